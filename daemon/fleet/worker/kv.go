package worker

// kv counts the tokens of KV that the requests in flight at a worker hold: their prompts, and the answers that are
// expected of them. A beginning that several share is held once. It is counted so only at a worker that has no room
// otherwise: with 32 parts a prompt, the look-ups were 1 % of a request's CPU.
type kv struct {
	whole  int             // tokens, as if nothing were shared
	tokens int             // with what is shared once; kept while parts is
	parts  map[uint64]part // nil = not counted
	from   int             // whole, when parts began to be counted
}

// part is a part of prompts in flight. Its tokens are those of the request that brought it: later ones may estimate
// others.
type part struct{ requests, tokens int }

// held returns the held tokens. If shared parts are tracked, it counts each of them once.
func (k *kv) held() int {
	if k.parts == nil {
		return k.whole
	}
	return k.tokens
}

// add counts what a request holds.
func (k *kv) add(r *request) {
	k.whole += r.holds()
	if k.parts != nil {
		k.addParts(r)
	}
}

func (k *kv) addParts(r *request) {
	k.tokens += r.rest()
	for _, h := range r.parts {
		p := k.parts[h]
		if p.requests == 0 {
			p.tokens = int(r.partTokens)
			k.tokens += p.tokens
		}
		p.requests++
		k.parts[h] = p
	}
}

// remove counts a request down. Parts are counted until the worker holds half of the tokens that it held when the
// counting started.
func (k *kv) remove(r *request) {
	k.whole -= r.holds()
	if k.parts == nil {
		return
	}
	if k.whole <= k.from/2 {
		k.parts = nil
		return
	}
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

// countShared counts what several requests share once from now on. f has the requests that were added.
func (k *kv) countShared(f *flight) {
	if k.parts != nil {
		return
	}
	k.parts, k.tokens, k.from = map[uint64]part{}, 0, k.whole
	for r := f.First; r != nil; r = r.inFlight.Next {
		k.addParts(r)
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
