package sdk

import "github.com/warmpath/warmpath/sdk/abi"

// Worker is one candidate: its load, what it holds of the prompt, what the host has learnt of it.
type Worker = abi.Row

// Strategy chooses a worker for a request.
type Strategy interface {
	// Route returns the worker to send r to, as an index into workers by [To], or [Decline] to leave the choice to the
	// host, or [Reject] to turn the request away. It may name further choices for failover with [Request.Then]; the host
	// appends those that are not named. It is never called twice at once on one instance. A panic is answered by the
	// host's fallback and costs the instance.
	Route(r *Request, workers []Worker) Decision
}

// Configurer is implemented by a strategy that has options.
type Configurer interface {
	// Configure is called once, before the first Route, also when no option is set. An error keeps the module from
	// being loaded; its text is shown to the operator, so name the option and the remedy.
	Configure(o *Options) error
}

var registered Strategy

// Register makes s the module's strategy. Call it from init, once.
func Register(s Strategy) {
	if s == nil {
		panic("sdk: Register(nil); pass the strategy")
	}
	if registered != nil {
		panic("sdk: Register is called twice; a module is one strategy")
	}
	registered = s
}

// PickNative runs s without a sandbox on a header and rows as the host would write them. order receives the
// alternatives, as many as it has room for; h.OrderLen gets their number.
func PickNative(s Strategy, h *abi.Header, rows []abi.Row, order []uint32) Decision {
	h.OrderLen, h.HoldMillis, h.PairRow = 0, 0, -1
	return s.Route(NewRequest(h, order), rows)
}
