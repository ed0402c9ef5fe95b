package relocate

import "time"

// Way is how the KV cache of a prompt gets to the new worker.
//
//	way      needs                                                   what proves it
//	Load     a tier of all workers that they write to (LMCache over  the new worker's count of cached tokens
//	         [kv_cache] or Redis), and that vLLM counts cached
//	         tokens (--enable-prompt-tokens-details)
//	Compute  nothing                                                 its answer
//
// Store comes before Load: the worker that has the conversation gets the prompt once more. It has it on its GPU, so
// this costs one step. LMCache then looks up the prompt, and stores each whole chunk that its look-up does not find
// (lmcache/integration/vllm/vllm_v1_adapter.py: num_saved_tokens begins with the tokens found). What it finds in its
// own memory it does not store again, even if the tier has lost it.
type Way uint8

// The ways.
const (
	Compute Way = iota
	Store
	Load
	ways
)

// EachWay calls f for each way, with the time that its requests took.
func (c *Counts) EachWay(f func(way string, took time.Duration)) {
	for way, name := range [ways]string{"compute", "store", "load"} {
		f(name, c.Took[way])
	}
}

// loaded is the share of a prompt that the new worker must have had or loaded, or the move counts as computed: the rest
// is the end of the prompt that fills no chunk.
const loaded = .8

// via returns how a move begins. A plan tries the tier until more prompts were computed than loaded.
func (p *Plan) via() Way {
	if p.book.Tier != nil && p.book.Tier() && p.computed <= p.loaded {
		return Store
	}
	return Compute
}

// judge returns how the prompt of m has got to the worker that had so many of its tokens cached.
func (p *Plan) judge(m *Move, cached int) Way {
	if m.Way != Load {
		return m.Way
	}
	if float64(cached) < loaded*float64(m.Tokens) {
		p.computed++
		return Compute
	}
	p.loaded++
	return Load
}
