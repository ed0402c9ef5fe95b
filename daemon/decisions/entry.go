package decisions

import (
	"time"
	"unsafe"

	"github.com/warmpath/warmpath/daemon/exchange"
	"github.com/warmpath/warmpath/daemon/gate"
	"github.com/warmpath/warmpath/daemon/packed"
	"github.com/warmpath/warmpath/daemon/route"
)

// entry is one request. Its memory is used again.
type entry struct {
	seen    exchange.Seen // its Candidates and Frame are in sketch
	sketch  route.Sketch
	number  uint64
	change  uint64 // of the last change of it, counted over the ring
	at      time.Time
	client  string
	key     string
	method  string
	path    string
	open    bool
	sent    int64
	seconds float64
	size    int // of one that is open
}

// note takes what is known of a request. Its texts are the request's own: they are copied when it ends.
func (e *entry) note(in *exchange.Inbound) {
	e.seen = in.Seen
	e.seen.ID, e.seen.Model = gate.Cut(in.ID), gate.Cut(in.Seen.Model)
	e.seen.Candidates, e.seen.Frame, e.seen.Others = nil, nil, nil
	e.client, e.method, e.path = in.Remote, gate.Cut(in.Method), gate.Cut(in.Path)
	if in.Caller != nil {
		e.key = in.Caller.Name
	}
}

// measure counts the bytes of memory of an entry that is open.
func (e *entry) measure() {
	words := len(e.seen.ID) + len(e.seen.Model) + len(e.path) + len(e.client) + len(e.seen.Trace)
	e.size = int(unsafe.Sizeof(*e)) + e.sketch.Size() + words + len(e.seen.Attempts)*int(unsafe.Sizeof(route.Attempt{}))
}

// clear forgets the request and keeps the memory.
func (e *entry) clear() {
	e.sketch.Clear()
	*e = entry{sketch: e.sketch}
}

// code writes an entry that has ended, or reads it.
func (e *entry) code(c *packed.Coder) {
	e.codeAsked(c)
	e.codeRest(c)
}

// codeAsked is what a query asks for: it comes first, so that no more is read of entries that are not wanted.
func (e *entry) codeAsked(c *packed.Coder) {
	s := &e.seen
	c.Text(&s.ID)
	c.Text(&s.Pool)
	c.Text(&s.Worker)
	c.Text(&s.Model)
	c.Text(&e.key)
	c.Text(&s.End)
	packed.Int(c, &s.Status)
	c.Float(&e.seconds)
}

func (e *entry) codeRest(c *packed.Coder) {
	s := &e.seen
	at := e.at.UnixNano()
	packed.Int(c, &e.number)
	packed.Int(c, &at)
	if c.Reading() {
		e.at = time.Unix(0, at)
	}
	for _, v := range []*string{&s.Endpoint, &s.Strategy, &s.Module, &s.Session, &s.Trace, &s.Reason, &s.Fallback, &e.client,
		&e.method, &e.path} {
		c.Text(v)
	}
	for _, v := range []*int{&s.PromptTokens, &s.LongestPrompt, &s.Prompts, &s.PromptBlocks, &s.Matched, &s.Predicted,
		&s.Believed, &s.More, &s.Usage.Prompt, &s.Usage.Output, &s.Usage.Cached, &s.Retries} {
		packed.Int(c, v)
	}
	for _, v := range []*time.Duration{&s.PickTime, &s.Queue, &s.FirstByte, &s.Total} {
		packed.Int(c, v)
	}
	packed.Int(c, &s.Fuel)
	packed.Int(c, &e.sent)
	tokens := float64(s.BlockTokens)
	c.Float(&tokens)
	s.BlockTokens = float32(tokens)
	c.Bools(&s.Tokens, &s.Live, &s.Usage.Known, &s.Usage.CachedKnown, &s.Stream)
	n := c.Len(len(s.Attempts))
	if c.Reading() && n > 0 {
		s.Attempts = make([]route.Attempt, n)
	}
	for i := range s.Attempts {
		a := &s.Attempts[i]
		c.Text(&a.Worker)
		c.Text(&a.Reason)
		packed.Int(c, &a.After)
	}
	e.sketch.Code(c)
}

// decision puts an entry into words. The frame, which is for machines, is in it only if it is wanted.
func (e *entry) decision(frame bool) Decision {
	d := Decision{Record: e.seen.Record, Number: e.number, At: e.at, Client: e.client, Key: e.key, Method: e.method,
		Path: e.path, Open: e.open, Status: e.seen.Status, Stream: e.seen.Stream, Retries: e.seen.Retries, End: e.seen.End,
		Bytes: e.sent, Seconds: e.seconds}
	if e.sketch.Known() {
		e.sketch.Explain(&d.Record)
	}
	if !frame {
		d.Frame = nil
	}
	return d
}
