package host

import "time"

// Result is what Pick decided.
type Result struct {
	Row      int           // of the frame; -1 only for a frame without rows
	Order    []int32       // the rows that may be tried, best first, Order[0] == Row; aliases Frame.Order
	Named    int           // leading rows of Order that the strategy has named; the host added the others
	Reason   uint16        // the strategy's own code
	Flags    uint16        // abi.FlagBind, abi.FlagOnly
	Fuel     int64         // used
	Took     time.Duration // of Current.Pick, with the wait for an instance
	Fallback string        // why Fallback chose Row, one of reasonNames; "" = the module did

	// Pair is 1 + the row of the worker that is to compute the prompt, as the strategy names it: that of Row if no other
	// one is to do it. 0 = the strategy leaves that to the host.
	Pair int

	// Wishes are what is to be done with the conversation's KV cache. They alias the frame. One that fails has none.
	Wishes []Wish

	// Reject is set if the strategy wants the client turned away; with Fallback, if the operator does. Row is then the
	// fallback's, for a caller that serves it all the same.
	Reject *Rejection

	// Hold is for how long the strategy has the request wait for a better worker, in all; 0 = not. Row is then the
	// fallback's, for a caller that does not wait, or no longer.
	Hold time.Duration
}

// reason is why the fallback answered.
type reason uint8

const (
	ok reason = iota
	trap
	outOfFuel
	outOfTime
	decline
	badIndex
	busy
	quarantined
	memory
	closed
	noRows
	holdOver // the time for which the module has held the request is over
	reasons
)

var reasonNames = [reasons]string{"", "trap", "fuel", "time", "decline", "bad_index", "busy", "quarantined",
	"memory", "closed", "no_rows", "hold"}

// Wish is what a strategy asks to be done with the KV cache of the conversation whose request it decides.
type Wish struct {
	What    int32  // abi.CacheKeep, CacheDrop, CachePrefetch or CacheCopy
	Row     int    // of the last two: the worker that is to hold the prompt
	Amount  uint32 // milliseconds; of abi.CacheCopy blocks
	Session string // of abi.CacheDrop: its name; "" = the request's own
}
