package exchange

import (
	"context"
	"time"

	"github.com/warmpath/warmpath/daemon/request/admission"
	"github.com/warmpath/warmpath/daemon/request/epoch"
	"github.com/warmpath/warmpath/daemon/request/message"
	"github.com/warmpath/warmpath/daemon/request/prompt"
	"github.com/warmpath/warmpath/daemon/request/route"
	"github.com/warmpath/warmpath/daemon/request/tokens"
)

// findIDs gets the token ids of the prompt, for a strategy that goes by what the workers hold. It takes no longer than
// the pool's budget. Without ids the request is routed by its text. It returns the lesson that the answer is to teach,
// or nil.
func findIDs(ctx context.Context, from *epoch.Asking, in *message.Inbound, read *admission.Reading,
	ask *route.Ask) *tokens.Lesson {
	ask.Adapter = from.Adapter(read.Req.Model, ask.At)
	if !hasIDs(read.Req) {
		return nil
	}
	q := new(tokens.Question)
	if read.Clear && in.Tail == nil && in.Kept == nil {
		q.Read(read.Req.Kind, read.Req.Model, in.Body)
	}
	q.Fence = ask.Fence
	var o tokens.Outcome
	r := tokens.Request{Question: q, Body: in.Body, Arrived: ask.At, Deadline: ask.Deadline}
	ask.IDs, o = from.IDs(ctx, r)
	if o != tokens.Given && o != tokens.Cached { // a worker was asked, which takes time
		ask.At = time.Now()
	}
	return from.Lesson(r, ask.IDs, o)
}

// hasIDs reports whether a request has a prompt whose ids show what a worker holds of it.
func hasIDs(r *prompt.Request) bool { return r.HasPrompt && r.Kind.Generates() && !r.BypassesCache }
