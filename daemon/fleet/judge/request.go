package judge

import (
	"sync/atomic"
	"time"
)

// Request is what counts of one request at a worker, until it ends.
type Request struct {
	Number uint64 // among all of the pool; 0 = another router's
	Class  uint8  // below Classes
	Whole  bool   // the answer comes in one piece
	Paired bool   // another worker computes its prompt, or answers what it is the prompt of
	Ended  bool
	Called bool          // the holder was called, or will be
	Away   bool          // another worker computes its prompt now: that it waits shows nothing
	Sent   time.Duration // to the worker
	First  time.Duration // when the first byte came; 0 = it has not

	flow atomic.Int64 // when the last byte came; 0 = none has
}

// Waits reports whether it is the worker of which no byte of the answer has come yet.
func (r *Request) Waits() bool { return r.First == 0 && !r.Ended && !r.Away }

// LastByte returns when the last byte of the answer came; 0 = none has.
func (r *Request) LastByte() time.Duration { return time.Duration(r.flow.Load()) }
