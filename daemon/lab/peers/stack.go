package peers

import (
	"math/rand/v2"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/trial"
)

// StackPrefix is production-stack's prefixaware: one of the workers with the longest match by lot, whatever their load.
// With no match at all that is any worker. It never forgets what it sent.
//
// Source: vllm-project/production-stack, src/vllm_router/routers/routing_logic.py, PrefixAwareRouter (commit 008a23bd),
// over a trie of chunks of 128 characters.
type StackPrefix struct {
	remembering
	rng *rand.Rand
}

// NewStackPrefix returns the rule. Its lots are drawn from seed.
func NewStackPrefix(seed uint64) *StackPrefix {
	return &StackPrefix{remembering: remember(Memory{}), rng: rand.New(rand.NewPCG(seed, 1))}
}

// Choose implements trial.Chooser.
func (s *StackPrefix) Choose(_ time.Duration, q *trial.Request, fleet []trial.View) int {
	s.look(q, fleet)
	best, longest := s.longest(fleet)
	n := 0
	for i := range fleet {
		if !fleet[i].Up || s.matches[i] < longest {
			continue
		}
		n++
		if s.rng.IntN(n) == 0 {
			best = i
		}
	}
	return best
}

// StackKVAware is production-stack's kvaware: the worker that holds the prompt's FIRST chunk, of several the one that
// registered first, if the chunks that it is the first to hold reach to within Threshold tokens of the prompt's end.
// Else the request goes by its session, as in Session.
//
// Sources: vllm-project/production-stack, src/vllm_router/routers/routing_logic.py, KvawareRouter (commit 008a23bd);
// the lookup is LMCache's, lmcache/v1/cache_controller/controllers/kv_controller.py, KVController.lookup (0.3.15). The
// view here is that of the GPUs' events and exact; LMCache reports CPU memory in chunks of 256.
type StackKVAware struct {
	Session
	held      held
	Threshold int // tokens; kv_aware_threshold, default 2000
}

// Choose implements trial.Chooser.
func (s *StackKVAware) Choose(now time.Duration, q *trial.Request, fleet []trial.View) int {
	first, matched := -1, 0
	for i, h := range q.Chain {
		owner := s.held.first(h, fleet)
		if owner < 0 {
			break
		}
		if i == 0 {
			first = owner
		}
		if owner == first {
			matched = (i + 1) * q.BlockTokens
		}
	}
	if first < 0 || matched < q.Prompt-s.Threshold {
		return s.Session.Choose(now, q, fleet)
	}
	return first
}

// Stored implements trial.Hearer.
func (s *StackKVAware) Stored(_ time.Duration, worker int, hashes []uint64) {
	s.held.store(worker, hashes)
}

// Removed implements trial.Hearer.
func (s *StackKVAware) Removed(_ time.Duration, worker int, hashes []uint64) {
	s.held.remove(worker, hashes)
}

// Down implements trial.Chooser.
func (s *StackKVAware) Down(_ time.Duration, worker int) { s.held.lose(worker) }

// held is what the workers hold by their events: how many copies of each block.
type held struct {
	of []map[uint64]int32
}

func (h *held) worker(i int) map[uint64]int32 {
	for i >= len(h.of) {
		h.of = append(h.of, make(map[uint64]int32))
	}
	return h.of[i]
}

func (h *held) store(worker int, hashes []uint64) {
	w := h.worker(worker)
	for _, x := range hashes {
		w[x]++
	}
}

func (h *held) remove(worker int, hashes []uint64) {
	w := h.worker(worker)
	for _, x := range hashes {
		w[x]--
		if w[x] <= 0 {
			delete(w, x)
		}
	}
}

func (h *held) lose(worker int) { clear(h.worker(worker)) }

// match returns the leading blocks that a worker holds.
func (h *held) match(worker int, chain []uint64) int {
	w := h.worker(worker)
	for i, x := range chain {
		if w[x] == 0 {
			return i
		}
	}
	return len(chain)
}

// first returns the first worker that is up and holds a block; -1 if none does.
func (h *held) first(hash uint64, fleet []trial.View) int {
	for i := range fleet {
		if fleet[i].Up && h.worker(i)[hash] > 0 {
			return i
		}
	}
	return -1
}
