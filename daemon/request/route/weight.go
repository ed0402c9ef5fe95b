package route

import (
	"cmp"
	"encoding/binary"
	"hash/fnv"
	"math"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/request/relocate"
	"github.com/warmpath/warmpath/host"
	"github.com/warmpath/warmpath/sdk/abi"
	"github.com/warmpath/warmpath/sdk/score"
)

// Weight is what a queue weighs a request by that no worker has room for.
type Weight struct {
	Lane    uint64  // the same for requests that the same workers can serve
	Prefill float64 // seconds that the worker needs for it that holds the most of it, be it full or not
	Place   float64 // seconds for which it is expected to have its place there
	KV      float64 // part of that worker's KV cache that it is expected to take
	Queued  float64 // seconds of prefill before it at the worker where they are the fewest
}

// Weigh returns that of a choice after any verdict, and before Release. It changes nothing of the choice.
func Weigh(c *Choice) (w Weight) {
	d := decisions.Get().(*decision)
	defer decisions.Put(d)
	d.reset(&c.ask)
	defer func() { d.ask = Ask{} }()
	q := c.query()
	q.Full, q.Again, q.Bound = true, true, c.stay.worker()
	f := &d.fleet
	f.fill(c.pool.Workers, q)
	w.Lane = laneOf(c)
	h := &f.frame.Header
	h.C1, h.C2 = float32(c.pool.Workers.C1()), float32(c.pool.Workers.C2())
	if c.prompt.HasPrompt {
		below := c.pool.lower.spaces(c.spaceID)
		f.match(c.pool, c.pool.Index.Space(c.spaceID), &below, &c.ask)
	}
	scale := score.NewScale(h, f.frame.Rows)
	w.Prefill, w.Queued = math.Inf(1), math.Inf(1)
	for i := range f.frame.Rows {
		row := &f.frame.Rows[i]
		if id := c.stay.worker(); id != "" && f.workers[i].ID() != id {
			continue
		}
		w.Queued = min(w.Queued, row.Wait)
		if p := scale.Terms(row).Prefill; p < w.Prefill {
			w.Prefill = p
			w.expect(c, row)
		}
	}
	if math.IsInf(w.Prefill, 1) { // none is up
		w.Prefill, w.Queued = c.pool.Workers.Estimate(c.size.all, 0), 0
		w.expect(c, &abi.Row{})
	}
	return w
}

// WeighAt is Weigh for the worker that a request goes to. Call it before Release.
func WeighAt(c *Choice, to Target) (w Weight) {
	row, scale := &c.fleet.frame.Rows[to.row], score.NewScale(&c.fleet.frame.Header, c.fleet.frame.Rows)
	w.Prefill = scale.Terms(row).Prefill
	w.expect(c, row)
	return w
}

// expect fills how long a request of that prefill has its place at a worker, and what it takes of its KV cache.
func (w *Weight) expect(c *Choice, row *abi.Row) {
	output := float64(c.pool.answers.expected(hashOf(c.prompt.Model), hashOf(c.ask.Caller), c.prompt.MaxTokens))
	w.Place = w.Prefill + output*cmp.Or(float64(row.TPOT), usualStep)
	if row.KVTokens > 0 {
		w.KV = min(1, (float64(c.size.all)+output)/float64(row.KVTokens))
	}
}

// laneOf returns the number of those that the same workers can serve: by model, by the worker of a bound session, by
// the rank that the client asks for, by the key's fence, and by what the filters have left. A request that was tried
// and that its strategy keeps to some workers waits for these alone: nobody who could go elsewhere waits behind it.
func laneOf(c *Choice) uint64 {
	h := fnv.New64a()
	h.Write([]byte(c.prompt.Model))
	h.Write([]byte{0})
	h.Write([]byte(c.stay.worker()))
	h.Write(binary.LittleEndian.AppendUint64([]byte{0}, uint64(c.ask.Rank)))
	for _, label := range c.ask.Fence {
		h.Write([]byte(label))
		h.Write([]byte{0})
	}
	for _, key := range c.only.Keys() {
		h.Write(binary.LittleEndian.AppendUint64([]byte{0}, key))
	}
	if o := &c.order; o.fenced && len(o.tried) > 0 {
		for _, w := range o.only {
			h.Write(binary.LittleEndian.AppendUint64([]byte{0}, w.Key()))
		}
	}
	return h.Sum64()
}

// Asked returns the request of a choice that is not released yet.
func Asked(c *Choice) Ask { return c.ask }

// Wishes returns what the strategy asks to be done with the cache of the conversation.
func Wishes(c *Choice) []relocate.Wish {
	if len(c.result.Wishes) == 0 {
		return nil
	}
	all := make([]relocate.Wish, 0, abi.MaxWishes)
	for _, w := range c.result.Wishes {
		one := relocate.Wish{What: relocate.Want(w.What), Session: w.Session,
			For: time.Duration(w.Amount) * time.Millisecond}
		if w.What >= abi.CachePrefetch {
			one.To = c.fleet.workers[w.Row].ID()
		}
		if w.What == abi.CacheCopy {
			one.Share = min(1, float64(w.Amount)/float64(max(1, c.fleet.frame.Header.PromptBlocks)))
		}
		all = append(all, one)
	}
	return all
}

// Talk returns what a strategy learns of the conversation later, when it may move.
func Talk(c *Choice) abi.Talk {
	h := &c.fleet.frame.Header
	return abi.Talk{Session: h.Session, Tenant: h.Tenant, Caller: h.Caller, Model: h.Model, Priority: h.Priority}
}

// Trips returns how many workers have got the request of a choice.
func Trips(c *Choice) int { return int(c.sent) }

// Lacks returns the verdict on the workers that have not had the request, whose order has come to its end: Full if one
// of them is up, Unheard if one has just come and had no health check yet. Chosen: one takes it now.
func Lacks(c *Choice, at time.Time) Verdict {
	if c.order.pinned {
		if c.ask.Leg == Prefill { // a decoder was told to meet it
			return NoWorker
		}
		v := alone(c.pool.Workers.Standing(c.First().ID(), c.prompt.Model, c.ask.Fence, at))
		if v == Unheard && c.sent > 0 { // it had its turn
			return NoWorker
		}
		return v
	}
	if c.order.fenced {
		return lacksOnly(c, at)
	}
	q := c.query()
	q.At, q.Again, q.Tried = at, true, c.order.tried
	_, _, standing := c.pool.Workers.Snapshot(q, nil, nil)
	if standing == worker.Starting {
		return Unheard
	}
	return nobody(standing)
}

// Comes reports whether a worker may take the request that was not there when the order was made: it has come up since,
// or its first health check is still to come.
func Comes(c *Choice, at time.Time) bool {
	if c.order.pinned {
		return false
	}
	v := Lacks(c, at)
	return v == Chosen || v == Unheard
}

// Anew chooses again for a request that has waited since its order came to its end. The strategy is asked, unless a
// worker has had the request before: then the others follow, the least busy first.
func Anew(c *Choice, at time.Time) Verdict {
	if c.sent == 0 {
		ask := c.ask
		ask.At, ask.Queue.Longest = at, 0 // a worker has turned it down: it has waited for better
		c.Unbind()
		if v := c.pool.Choose(c, &ask); v != Chosen {
			return v
		}
		return c.Bind()
	}
	v := Lacks(c, at)
	if v == Chosen && !c.order.pinned {
		c.lookAgain(at)
	}
	if v == Chosen && c.order.left() == 0 {
		return NoWorker
	}
	return v
}

// HoldFor returns for how long the request may wait in all, after the verdict Held.
func HoldFor(c *Choice) time.Duration { return min(c.result.Hold, c.ask.Queue.Longest) }

// Classify asks the strategy that a request goes to how urgent it is, before it waits. ok is false if the strategy has
// no opinion.
func Classify(c *Choice) (class int, weight float64, ok bool) {
	s := c.pool.canaries.serving(&c.pool.Strategy, &c.ask, c.stay.name.ID).Strategy()
	if !s.Wants(abi.WantClassify) {
		return 0, 0, false
	}
	var f host.Frame
	f.Reset()
	describe(&f, c.pool, &c.ask, c.stay.name.Tenant, c.sessionID())
	f.Header.PromptTokens = uint32(c.size.all)
	return s.Classify(&f)
}
