package worker

// kv counts the tokens of KV that the requests in flight at a worker hold: their prompts, with a beginning that several
// share once, and the answers that are expected of them.
type kv struct {
	tokens int
	parts  map[uint64]part
}

// part is a part of prompts in flight. Its tokens are those of the request that brought it: later ones may estimate
// others.
type part struct{ requests, tokens int }

// add counts what a request holds.
func (k *kv) add(r *request) {
	k.tokens += r.rest()
	for _, h := range r.parts {
		p := k.parts[h]
		if p.requests == 0 {
			p.tokens = int(r.partTokens)
			k.tokens += p.tokens
		}
		p.requests++
		if k.parts == nil {
			k.parts = map[uint64]part{}
		}
		k.parts[h] = p
	}
}

// remove counts a request down.
func (k *kv) remove(r *request) {
	k.tokens -= r.rest()
	for _, h := range r.parts {
		p := k.parts[h]
		p.requests--
		if p.requests > 0 {
			k.parts[h] = p
			continue
		}
		k.tokens -= p.tokens
		delete(k.parts, h)
	}
}

// shared returns how many leading tokens of a prompt requests in flight hold already. A part is held only with all
// before it.
func (k *kv) shared(b *Beginning) int {
	low, high := 0, min(len(b.Parts), MaxParts)
	for low < high {
		middle := (low + high + 1) / 2
		if _, held := k.parts[b.Parts[middle-1]]; held {
			low = middle
		} else {
			high = middle - 1
		}
	}
	return low * b.Tokens
}
