package exchange

// offered gives a strategy the header fields of a request that its configuration allows it.
type offered struct{ in *Inbound }

// Header implements host.HeaderSource.
func (o offered) Header(name string) (value string, ok bool) { return o.in.Lookup(name) }
