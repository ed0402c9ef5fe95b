package front

import (
	"context"
	"time"

	"github.com/warmpath/warmpath/daemon/request/message"
)

// Backend serves the requests that the front has read.
type Backend interface {
	// Epoch is what is in force now.
	Epoch() *Epoch
	// Serve answers a request.
	Serve(ctx context.Context, in *message.Inbound) *message.Outbound
	// Ready is what /ready answers.
	Ready(draining bool) (ready bool, page any)
	// Ended takes how a request ended: its time, and the bytes of the answer's body.
	Ended(in *message.Inbound, took time.Duration, sent int64)
	// Trace follows a request that has been let in, before its body is read: it may set in.Trace.
	Trace(in *message.Inbound, at time.Time)
}
