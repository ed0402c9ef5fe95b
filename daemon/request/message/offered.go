package message

// Offered gives a strategy the header fields of a request that its configuration allows it.
type Offered struct{ In *Inbound }

// Header implements host.HeaderSource.
func (o Offered) Header(name string) (value string, ok bool) { return o.In.Lookup(name) }
