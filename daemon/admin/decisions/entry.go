package decisions

import (
	"math"
	"time"

	"github.com/warmpath/warmpath/daemon/request/exchange"
	"github.com/warmpath/warmpath/daemon/request/route"
	"github.com/warmpath/warmpath/daemon/transport/gate"
	"github.com/warmpath/warmpath/daemon/transport/packed"
)

// entry is one request, as it is written and read.
type entry struct {
	seen   *exchange.Seen // its Candidates and Frame are in sketch
	sketch *route.Sketch
	number uint64
	at     time.Time
	id     string
	model  string
	module string
	reason string
	client string
	key    string
	method string
	path   string

	open    bool
	sent    int64
	seconds float64
}

// of takes the fields of a request. Its texts are the request's own, cut to gate.MaxText bytes.
func (e *entry) of(in *exchange.Inbound) {
	e.seen = &in.Seen
	e.id, e.model, e.method, e.path = gate.Cut(in.ID), gate.Cut(in.Seen.Model), gate.Cut(in.Method), gate.Cut(in.Path)
	e.client = in.Remote
	if in.Caller != nil {
		e.key = in.Caller.Name
	}
}

// codeAsked writes or reads the fields that a query selects by. They come first, so that no more is read of entries
// that are not wanted.
func (e *entry) codeAsked(c *packed.Coder) { c.Texts(&e.id, &e.seen.Pool, &e.model, &e.key) }

// codeRest writes or reads the other fields that are known at the decision.
func (e *entry) codeRest(c *packed.Coder) {
	s := e.seen
	c.Texts(&s.Endpoint, &s.Strategy, &e.module, &s.Session, &s.Trace, &e.reason, &s.Fallback, &e.client, &e.method,
		&e.path)
	var n [11]uint64
	if !c.Reading() {
		n = [...]uint64{uint64(e.at.UnixNano()), uint64(s.PromptTokens), uint64(s.LongestPrompt), uint64(s.Prompts),
			uint64(s.PromptBlocks), uint64(s.Predicted), uint64(s.Fuel), uint64(s.PickTime), uint64(s.Queue), uint64(s.More),
			uint64(math.Float32bits(s.BlockTokens))}
	}
	c.Words(n[:], nil)
	if c.Reading() {
		e.at, s.PromptTokens, s.LongestPrompt, s.Prompts = time.Unix(0, int64(n[0])), int(n[1]), int(n[2]), int(n[3])
		s.PromptBlocks, s.Predicted, s.Fuel = int(n[4]), int(n[5]), int64(n[6])
		s.PickTime, s.Queue, s.More = time.Duration(n[7]), time.Duration(n[8]), int(n[9])
		s.BlockTokens = math.Float32frombits(uint32(n[10]))
	}
	c.Bools(&s.Tokens)
	e.sketch.Code(c)
}

// codeEnd writes or reads the fields that are known at the end.
func (e *entry) codeEnd(c *packed.Coder) {
	s := e.seen
	c.Texts(&s.Worker, &s.End)
	c.Bools(&s.Live, &s.Usage.Known, &s.Usage.CachedKnown, &s.Stream)
	var n [11]uint64
	if !c.Reading() {
		n = [...]uint64{uint64(s.Status), uint64(s.Matched), uint64(s.Believed), uint64(s.Usage.Prompt),
			uint64(s.Usage.Output), uint64(s.Usage.Cached), uint64(s.Retries), uint64(s.FirstByte), uint64(s.Total),
			uint64(e.sent), math.Float64bits(e.seconds)}
	}
	c.Words(n[:], nil)
	if c.Reading() {
		s.Status, s.Matched, s.Believed = int(n[0]), int(n[1]), int(n[2])
		s.Usage.Prompt, s.Usage.Output, s.Usage.Cached = int(n[3]), int(n[4]), int(n[5])
		s.Retries, s.FirstByte, s.Total = int(n[6]), time.Duration(n[7]), time.Duration(n[8])
		e.sent, e.seconds = int64(n[9]), math.Float64frombits(n[10])
	}
	failed := c.Len(len(s.Attempts))
	if c.Reading() {
		s.Attempts = make([]route.Attempt, failed)
	}
	for i := range s.Attempts {
		a := &s.Attempts[i]
		c.Texts(&a.Worker, &a.Reason)
		packed.Int(c, &a.After)
	}
}

// decision puts an entry into words. The frame, which is for machines, is in it only if it is wanted.
func (e *entry) decision(frame bool) Decision {
	s := e.seen
	d := Decision{Record: s.Record, Number: e.number, At: e.at, Client: e.client, Key: e.key, Method: e.method,
		Path: e.path, Open: e.open, Status: s.Status, Stream: s.Stream, Retries: s.Retries, End: s.End, Bytes: e.sent,
		Seconds: e.seconds}
	d.ID, d.Model, d.Module, d.Reason = e.id, e.model, e.module, e.reason
	if e.sketch.Known() {
		e.sketch.Explain(&d.Record)
	}
	if !frame {
		d.Frame = nil
	}
	return d
}

// whole reads the kept request of that number, which has ended unless end is nil.
func whole(number uint64, decided, end []byte) *entry {
	e := &entry{seen: new(exchange.Seen), sketch: new(route.Sketch), number: number, open: end == nil}
	c := packed.Read(string(decided))
	e.codeAsked(&c)
	e.codeRest(&c)
	if e.open { // it is at the worker that came first, if none has failed it
		s, held := e.seen, uint32(0)
		s.Worker, held = e.sketch.First()
		s.Believed = int(float32(held) * s.BlockTokens)
		return e
	}
	c = packed.Read(string(end))
	e.codeEnd(&c)
	return e
}
