package names

// Reason is why a request goes to another model. Several make a set.
type Reason uint8

// The reasons.
const (
	Down    Reason = 1 << iota // no worker of the model is up
	Full                       // each has as much to do as it may have, and the queue brought no turn
	Context                    // the request is longer than the model takes
)

// All are all reasons.
const All = Down | Full | Context

// MaxFallbacks is how many models are asked at most after the first one.
const MaxFallbacks = 3

// String returns the reason's name in a configuration, in headers and in metrics.
func (r Reason) String() string {
	switch r {
	case Down:
		return "down"
	case Full:
		return "full"
	case Context:
		return "context"
	}
	return ""
}

// ReasonsOf returns the set of the reasons with these names. If names is empty, it returns all reasons.
func ReasonsOf(names []string) (set Reason) {
	for _, name := range names {
		for r := Down; r <= Context; r <<= 1 {
			if r.String() == name {
				set |= r
			}
		}
	}
	if set == 0 {
		return All
	}
	return set
}

// After returns what a request of the alias is sent to next for that reason, under the name that the client sent. If it
// returns nil, the client gets the error.
func (a *Alias) After(why Reason) *Alias {
	if a == nil || a.On&why == 0 {
		return nil
	}
	return a.next
}

// follow returns the fallbacks after the alias for a client that sent the name, at most the given number.
func (l *List) follow(a *Alias, name string, left int) *Alias {
	if a.Fallback == "" || left == 0 {
		return nil
	}
	next := &Alias{Name: name, Targets: []Target{{Model: a.Fallback, Weight: 1}}, later: true}
	if to := l.of[a.Fallback]; to != nil {
		next.Fallback, next.On = to.Fallback, to.On
		if len(to.Targets) > 0 {
			next.Targets, next.split = to.Targets, to.Name
		}
	}
	next.next = l.follow(next, name, left-1)
	return next
}

// leadsTo reports whether the alias or one of its fallbacks has the model.
func (a *Alias) leadsTo(model string) bool {
	for ; a != nil; a = a.next {
		if a.has(model) {
			return true
		}
	}
	return false
}
