package message

import (
	"context"

	"github.com/warmpath/warmpath/daemon/request/epoch"
	"github.com/warmpath/warmpath/daemon/request/session"
	"github.com/warmpath/warmpath/daemon/transport/upstream"
)

// Entry is what a protocol around a request adds to its body: SageMaker's session calls. The zero value is
// a plain request.
type Entry struct {
	Door    Protocol // nil = the plain one, which changes nothing
	Pool    string   // that the path names; "" = the model or the session decides
	Session string   // the id of an opened session that must live; "" = none
	Op      Op
	Held    bool   // of To: only if it holds half of the prompt at least
	Salt    string // keeps an application's prompts apart
	Model   string // in place of the body's
	Mate    *Mate  // of Prefilling: the worker that answers
	To      string // of Moving: the worker that has the beginning of the prompt; "" = any may get it
}

// Mate has the labels of the worker for which another one computes a prompt, each as name=value.
type Mate struct {
	Same []string // that the other worker must have
	Near string   // that the other worker should have; "" = none

	// Ahead is called when a worker's place is taken and the queue's turn given back, before anything is sent. If it
	// reports false, no worker gets the request. nil = nothing is called.
	Ahead func(ctx context.Context) bool
}

// Op is what a request does to its opened session.
type Op uint8

// The operations.
const (
	Use     Op = iota
	Opening    // no session lives yet: the choice of a worker is for it
	Closing    // only the session's worker can serve it, and no model is named

	Prefilling // only the prompt is to be computed: see Pairing
	Moving     // likewise, at the worker to which the router moves a conversation
	Continuing // the rest of an answer that another worker broke off
)

// Protocol changes what passes between client and worker.
type Protocol interface {
	// Target returns the path at the worker.
	Target(p *epoch.Pool) string
	// Strips reports whether the worker does not get this field of the client.
	Strips(name, value string) bool
	// Header appends the fields that name the session to the worker.
	Header(out []upstream.Field, p *epoch.Pool, b session.Binding) []upstream.Field
	// EndsStreams reports whether the door itself ends a stream that broke off. It then reads the cause as the stream's
	// error, in place of an error event.
	EndsStreams() bool
}

// WithSalt returns what keeps prompts apart: by application and by the body's own salt.
func (e *Entry) WithSalt(body string) string {
	if e.Salt == "" {
		return body
	}
	return body + "\x00" + e.Salt
}
