package route

import (
	"math"
	"strconv"
	"time"

	"github.com/warmpath/warmpath/daemon/request/breaks"
	"github.com/warmpath/warmpath/daemon/request/identity"
	"github.com/warmpath/warmpath/daemon/request/prompt"
	"github.com/warmpath/warmpath/daemon/request/session"
)

// talk is the conversation that a request names or continues, in the pool's book. It is a hint for strategies: no
// request waits for it or stays at a worker because of it. The zero value is none.
//
// A request that names none continues the conversation whose last prompt and answer its prompt extends. Where it
// extends none, it begins one, which is known from its second request on. If two extend the same end, the first
// continues the conversation, and of the other one nothing is known.
type talk struct {
	key identity.Key
	of  identity.Kind
	end identity.Mark // that the prompt extends, of a conversation that no client names; then the prompt's own
}

// conversation returns the name of the conversation that the client says the request belongs to; ID "" = none.
func (c *Claim) conversation() session.Name {
	switch {
	case c.Opened.ID != "":
		return c.Opened
	case c.Placing || c.Fresh:
		return session.Name{}
	}
	return c.Key
}

// none reports whether the request names no conversation.
func (t *talk) none() bool { return t.key == identity.Key{} }

// find finds the conversation that a request names whose answer is generated.
func (t *talk) find(p *Pool, a *Ask) {
	name := a.Claim.conversation()
	if name.ID != "" && a.Prompt.Kind.Generates() {
		*t = talk{key: p.book.Of(name.Tenant, name.ID), of: identity.Kind{Owner: name.Owner, By: a.Claim.By}}
	}
}

// follow finds the conversation that a request continues without a name. Its prompt was hashed.
func (t *talk) follow(p *Pool, a *Ask) {
	c := &a.Claim
	if !t.none() || c.Key.ID != "" || c.Opened.ID != "" || c.Stored[0].ID != "" || a.Away || a.Leg == Prefill ||
		!a.Prompt.Kind.Generates() || a.Prompt.PreviousResponse != "" || len(a.Prompt.Chains) != 1 {
		return
	}
	t.of = identity.Kind{Owner: a.Caller, By: identity.Lineage}
	t.end, t.key = p.book.Extends(a.Caller, a.Prompt.Chains[0].Hashes, a.At.UnixNano())
}

// unnamed reports whether the request names no conversation and may continue one.
func (t *talk) unnamed() bool { return t.of.By == identity.Lineage }

// fingerprint names an unnamed conversation.
func (t *talk) fingerprint() string {
	id := identity.Lineage + "\x00" + strconv.FormatUint(t.key[0], 36)
	return session.Fingerprint(session.Name{Kind: session.Key, ID: id})
}

// describe writes the conversation into the frame, whose rows are there.
func (t *talk) describe(p *Pool, a *Ask, f *fleet) {
	h := &f.frame.Header
	if a.Prompt.Expected > 0 {
		h.ExpectedOutput = hinted(a.Prompt, h.ExpectedOutput)
	}
	if t.unnamed() && t.none() && t.end != 0 || !t.unnamed() && (t.none() || h.Session == 0) {
		return
	}
	known, more := p.book.Look(t.key, t.of)
	h.Turn, h.ExpectedTurns = known.Turns+1, uint32(min(more, math.MaxUint32))
	h.Gap = float32(p.book.Gap(t.of))
	if known.Turns > 0 {
		h.SinceLast = float32(max(0, a.At.Sub(known.Last).Seconds()))
	}
	if a.Prompt.Expected == 0 && known.Output > 0 {
		h.ExpectedOutput = uint32(known.Output)
	}
	if a.Claim.Parent != "" {
		h.Parent = hashIn(a.Claim.Key.Tenant, a.Claim.Parent)
	}
	t.place(p, a, f)
}

// A hint of an answer's length counts up to farFrom times what such answers have, or freeHint tokens: what is expected
// counts as held KV while the request is in flight, and a client that exaggerates would make workers look full to all.
const (
	farFrom  = 8
	freeHint = 4 << 10
)

// hinted returns the tokens that an answer is expected to have by the client's hint. usual is what such answers have,
// 0 = not known.
func hinted(r *prompt.Request, usual uint32) uint32 {
	n := min(uint64(r.Expected), max(freeHint, farFrom*uint64(usual)))
	if r.MaxTokens > 0 {
		n = min(n, uint64(r.MaxTokens))
	}
	return uint32(n)
}

// place writes into the frame in which rows the workers are that the conversation and its parent went to. The rows may
// have changed since.
func (t *talk) place(p *Pool, a *Ask, f *fleet) {
	h, c := &f.frame.Header, &a.Claim
	if h.Turn == 0 {
		return
	}
	known, _ := p.book.Look(t.key, t.of)
	h.Last, h.ParentRow = f.rowOf(known.Worker), -1
	if c.Parent != "" {
		parent, _ := p.book.Look(p.book.Of(c.Key.Tenant, c.Parent), t.of)
		h.ParentRow = f.rowOf(parent.Worker)
	}
}

// near returns the keys of the workers that the conversation and its parent went to, 0 = none.
func (t *talk) near(p *Pool, a *Ask) (keys [3]uint64) {
	if t.none() {
		return keys
	}
	known, _ := p.book.Look(t.key, t.of)
	keys[0] = known.Worker
	if c := &a.Claim; c.Parent != "" {
		parent, _ := p.book.Look(p.book.Of(c.Key.Tenant, c.Parent), t.of)
		keys[1] = parent.Worker
	}
	return keys
}

// turn counts the request in its conversation, when the first worker gets it.
func (t *talk) turn(p *Pool, a *Ask, f *fleet, worker uint64, at time.Time) {
	if t.unnamed() {
		hashes, last := a.Prompt.Chains[0].Hashes, uint64(0)
		if len(hashes) > 0 {
			last = hashes[len(hashes)-1]
		}
		t.key, t.end = p.book.Step(&identity.Step{From: t.end, Of: t.key, Kind: t.of, Hash: last,
			Novel: len(hashes) > f.seen(), Worker: worker, At: at})
		return // what it extends is what it began with: there is no break to be noted
	}
	if t.none() {
		return
	}
	if chains := a.Prompt.Chains; len(chains) == 1 && chains[0].Tokens == 0 {
		p.breaks.Note(&breaks.Turn{Key: a.Caller, Session: t.key, Chain: &chains[0], At: at})
	}
	if a.Claim.Final {
		p.book.Forget(t.key)
	} else {
		p.book.Turn(t.key, t.of, worker, at)
	}
}

// answered records where an unnamed conversation ends, whose only prompt has been continued by its answer. A new one of
// whose prompt all is known has no end: what many prompts begin with is no sign of a conversation.
func (t *talk) answered(p *Pool, hashes []uint64, at time.Time) {
	if t.end != 0 {
		p.book.Ends(t.key, t.of.Owner, t.end, hashes[len(hashes)-1], at.UnixNano())
	}
}
