package peers

import (
	"sort"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/trial"
)

// Dynamo is the cost of Dynamo's KV router, in blocks, the smallest wins:
//
//	Scale * max(0, (tokens waiting for prefill there + prompt)/block - Credit*device - Host*below) + active blocks
//
// Device are the leading blocks that the GPU holds by its KV events, below those that follow in CPU memory. The events
// here are the GPUs' alone, so below is what it remembers to have sent there. Active blocks are those of the requests
// in flight there and of this one, each once. Temperature 0: no lot but among equals, here the next in turn.
//
// Source: ai-dynamo/dynamo, lib/kv-router/src/scheduling/selector/default.rs, worker_logit (commit 07a6c9ce), and
// selector/mod.rs for the loads. Defaults: prefill_load_scale 1, overlap_score_credit 1, host_cache_hit_weight .75.
// Older releases had one weight, kv_overlap_score_weight, which is Scale.
type Dynamo struct {
	remembering // the tiers below the GPU; looked at if Host is over 0
	held        held
	active      []load

	Scale, Credit, Host float64
}

// load is what the rule counts of one worker.
type load struct {
	prefill int // tokens not cached when sent, of requests without a first token
	blocks  map[uint64]int32
	sent    map[int]int // tokens of prefill, by request
}

func (d *Dynamo) of(worker int) *load {
	for worker >= len(d.active) {
		d.active = append(d.active, load{blocks: make(map[uint64]int32), sent: make(map[int]int)})
	}
	return &d.active[worker]
}

// decode returns the active blocks with the request there. A block is active only with all before it, so those that are
// shared are a beginning of the chain.
func (l *load) decode(chain []uint64) int {
	shared := sort.Search(len(chain), func(i int) bool { return l.blocks[chain[i]] == 0 })
	return len(l.blocks) + len(chain) - shared
}

// Choose implements trial.Chooser.
func (d *Dynamo) Choose(_ time.Duration, q *trial.Request, fleet []trial.View) int {
	d.look(q, fleet)
	return d.turn(smallest(fleet, d.next, func(i int) float64 {
		l, device := d.of(i), d.held.match(i, q.Chain)
		prefill := float64(l.prefill+q.Prompt) / float64(max(1, q.BlockTokens))
		credit := d.Credit*float64(device) + d.Host*float64(max(0, d.matches[i]-device))
		return d.Scale*max(0, prefill-credit) + float64(l.decode(q.Chain))
	}))
}

// look fills the matches, if they count.
func (d *Dynamo) look(q *trial.Request, fleet []trial.View) {
	if d.Host > 0 {
		d.remembering.look(q, fleet)
		return
	}
	d.matches = append(d.matches[:0], make([]int, len(fleet))...)
}

// Sent implements trial.Chooser.
func (d *Dynamo) Sent(now time.Duration, q *trial.Request, worker int) {
	l := d.of(worker)
	fresh := max(0, q.Prompt-q.BlockTokens*max(d.matches[worker], d.held.match(worker, q.Chain)))
	l.prefill += fresh
	l.sent[q.ID] = fresh
	for _, h := range q.Chain {
		l.blocks[h]++
	}
	if d.Host > 0 {
		d.remembering.Sent(now, q, worker)
	}
}

// First implements trial.Chooser.
func (d *Dynamo) First(_ time.Duration, q *trial.Request, worker int) {
	l := d.of(worker)
	l.prefill -= l.sent[q.ID]
	delete(l.sent, q.ID)
}

// End implements trial.Chooser.
func (d *Dynamo) End(now time.Duration, q *trial.Request, worker int, e *trial.End) {
	d.First(now, q, worker)
	if d.Host > 0 {
		d.remembering.End(now, q, worker, e)
	}
	l := d.of(worker)
	for _, h := range q.Chain {
		l.blocks[h]--
		if l.blocks[h] <= 0 {
			delete(l.blocks, h)
		}
	}
}

// Down implements trial.Chooser.
func (d *Dynamo) Down(now time.Duration, worker int) {
	d.held.lose(worker)
	d.remembering.Down(now, worker)
}

// Stored implements trial.Hearer.
func (d *Dynamo) Stored(_ time.Duration, worker int, hashes []uint64) { d.held.store(worker, hashes) }

// Removed implements trial.Hearer.
func (d *Dynamo) Removed(_ time.Duration, worker int, hashes []uint64) { d.held.remove(worker, hashes) }
