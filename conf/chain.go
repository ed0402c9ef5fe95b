package conf

// Chain names the strategies of a pool in the order in which they are asked: filters, and last the one that orders the
// workers that are left.
type Chain []string

// UnmarshalTOML reads a name or a list of names.
func (c *Chain) UnmarshalTOML(v any) error {
	const remedy = `write a name, or filters and then one that orders, as ["tenants", "prefixaware"]`
	*c = nil
	if name, ok := v.(string); ok {
		*c = Chain{name}
		return nil
	}
	list, _ := v.([]any)
	for _, one := range list {
		name, ok := one.(string)
		if !ok {
			return &fault{"it is neither a name nor a list of names", remedy}
		}
		*c = append(*c, name)
	}
	if len(*c) == 0 {
		return &fault{"it names no strategy", remedy}
	}
	return nil
}

// Orders returns the name of the strategy that orders.
func (c Chain) Orders() string { return c[len(c)-1] }

// Filters returns the names of the filters before it.
func (c Chain) Filters() []string { return c[:len(c)-1] }
