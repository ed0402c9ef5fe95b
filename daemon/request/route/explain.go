package route

import (
	"slices"
	"strings"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/request/record"
	"github.com/warmpath/warmpath/daemon/request/session"
	"github.com/warmpath/warmpath/host"
	"github.com/warmpath/warmpath/sdk/abi"
	"github.com/warmpath/warmpath/sdk/score"
)

// Note writes into r the parts of the decision that are cheap to get. It allocates nothing but the session's names.
func (c *Choice) Note(r *record.Record) {
	h := &c.fleet.frame.Header
	r.Strategy, r.Fallback = c.strategy.Name(), c.result.Fallback
	r.Endpoint = c.prompt.Kind.String()
	r.PromptTokens = c.size.all
	r.PromptBlocks, r.LeftOut = int32(h.PromptBlocks), int32(h.LeftOut)
	r.BlockTokens = h.BlockTokens
	if n := len(c.prompt.Chains); n > 1 {
		r.Prompts, r.LongestPrompt = int32(n), int32(c.size.longest)
	}
	r.Fuel = c.result.Fuel
	r.PickTime = c.result.Took
	r.Believed = int(c.held)
	if first := c.order.first(); first >= 0 {
		row := &c.fleet.frame.Rows[first]
		r.Queue, r.Predicted = time.Duration(row.Wait*float64(time.Second)), int32(row.Predicted)
	}
	r.Session = c.SessionKind()
	r.Aside = nil
	if c.pair != nil || len(c.said) > 0 {
		r.Aside = &record.Aside{Filters: c.said}
	}
	if c.pair != nil {
		r.Pair = c.pair.ID()
	}
	switch {
	case r.Named != nil || c.talk.none():
	case !c.talk.unnamed():
		r.Named = named(&c.ask.Claim, h.Turn)
	case h.Turn > 1:
		r.Named = &record.Named{Identity: c.talk.fingerprint(), NamedBy: c.talk.of.By, Turn: int(h.Turn)}
	}
	r.Tokens = h.Flags&abi.HeaderTokens != 0
}

// named returns the session that a request names, under the names that pages and logs have for sessions.
func named(c *Claim, turn uint32) *record.Named {
	n := &record.Named{Identity: session.Fingerprint(c.conversation()), NamedBy: c.By, Turn: int(turn)}
	if c.Parent != "" {
		n.Parent = session.Fingerprint(session.Name{Tenant: c.Key.Tenant, ID: c.Parent})
	}
	return n
}

// Explain writes all of the decision into r: the module, the reason in words and the candidates. It uses the memory of
// r again. It returns false after the choice was released.
func (c *Choice) Explain(r *record.Record) bool {
	if c.decision == nil {
		return false
	}
	c.Note(r)
	r.Relist()
	r.Module = c.strategy.SHA256()
	r.Reason = c.Reason()
	l := listing{order: &c.order, fleet: &c.fleet, model: c.prompt.Model, need: c.need(), only: c.only,
		all: r.Candidates[:0]}
	var few [4]worker.Stats
	all, more := l.list(c.others(few[:0], maxCandidates))
	r.Candidates, r.More = all, int32(more)
	f := host.Frame{Header: c.fleet.frame.Header, Rows: c.fleet.frame.Rows}
	if cut := len(f.Rows) - maxCandidates; cut > 0 { // the last ones are those of prefillers
		f.Rows = f.Rows[:maxCandidates]
		f.Header.Prefillers -= min(f.Header.Prefillers, uint32(cut))
	}
	r.Frame = f.AppendTo(r.Frame[:0])
	r.Offered = offered(&c.fleet.frame, c.strategy.Headers())
	return true
}

// others appends the workers that have no row, at most limit of them. Of a large pool the record has their number
// alone.
func (c *Choice) others(into []worker.Stats, limit int) []worker.Stats {
	if c.fleet.frame.Header.LeftOut > 0 {
		return into
	}
	return c.pool.Workers.Others(c.fleet.frame.Rows, c.ask.Fence, c.at, into, limit)
}

// maxOfferedHeader bounds the header fields that a record holds, in bytes. A longer one is not recorded.
const maxOfferedHeader = 256

// offered returns what a strategy that may see header fields of these names can ask for beside its frame.
func offered(f *host.Frame, names []string) *record.Offered {
	if len(f.Labels)+len(names) == 0 {
		return nil
	}
	a := &record.Offered{Labels: f.Labels}
	for _, name := range names {
		var there *string
		if f.Headers != nil {
			if v, ok := f.Headers.Header(name); ok && len(v) > maxOfferedHeader {
				continue
			} else if ok {
				v = strings.Clone(v) // else it keeps the memory of the whole header
				there = &v
			}
		}
		if a.Headers == nil {
			a.Headers = make(map[string]*string, len(names))
		}
		a.Headers[name] = there
	}
	return a
}

// maxCandidates bounds the candidates that a record lists: 64 of them are some 10 KB of JSON.
const maxCandidates = 64

// Why a worker that has a row is not in the order.
const (
	sessionStays = "the session stays at its worker"
	prefillsOnly = "computes prompts alone: see pair and split"
)

// unordered returns why a row that is not in the order is not, of so many that may be chosen.
func unordered(i, choices int) string {
	if i >= choices {
		return prefillsOnly
	}
	return sessionStays
}

// listing makes the candidates of a record.
type listing struct {
	order *order
	fleet *fleet
	model string
	need  int // see Choice.need
	only  *worker.Allowed
	all   []record.Candidate
}

// list returns the candidates: those of the order, then the skipped ones. others are the skipped workers that have no
// row. more counts those of the order that are not listed.
func (l *listing) list(others []worker.Stats) (all []record.Candidate, more int) {
	rows := l.fleet.frame.Rows
	l.all = slices.Grow(l.all, min(maxCandidates, len(rows)+len(others)))
	scale := score.NewScale(&l.fleet.frame.Header, rows)
	for _, i := range l.order.rows {
		l.add(candidate(&rows[i], l.fleet.workers[i].ID(), &scale))
	}
	for i, w := range l.fleet.workers {
		if !slices.Contains(l.order.rows, int32(i)) && !slices.Contains(l.order.tried, w) {
			other := candidate(&rows[i], w.ID(), &scale)
			other.Skipped = unordered(i, l.fleet.frame.Choices())
			l.add(other)
		}
	}
	for i := range others {
		l.add(absent(&others[i], l.model, l.need, l.only))
	}
	return l.all, max(0, len(l.order.rows)-len(l.all))
}

func (l *listing) add(c record.Candidate) {
	if len(l.all) < maxCandidates {
		l.all = append(l.all, c)
	}
}
