package route

import "sync"

// answers learns how many tokens the answers have that a caller gets of a model. A caller with few samples is
// expected to get the mean answer of all callers of the model. It knows both by the hashes of their names.
type answers struct {
	mu sync.Mutex // guards of
	of counted[answerMean]
}

type answerMean struct {
	tokens float64
	n      int
}

const (
	steady = 64 // answers from which on each new one counts 1/steady
	enough = 8  // of a caller's, to go by them alone
)

// learn takes the length of an answer.
func (a *answers) learn(model, caller uint64, tokens int) {
	if tokens <= 0 {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.of == nil {
		a.of = counted[answerMean]{}
	}
	for _, key := range [...]uint64{model, keyOf(model, caller)} {
		if !a.of.takes(key) {
			continue
		}
		m := a.of[key]
		m.n = min(m.n+1, steady)
		m.tokens += (float64(tokens) - m.tokens) / float64(m.n)
		a.of[key] = m
	}
}

// expected returns the tokens that an answer is expected to have, limit at most if that is not 0; 0 = not known.
func (a *answers) expected(model, caller uint64, limit uint32) uint32 {
	a.mu.Lock()
	m := a.of[keyOf(model, caller)]
	if m.n < enough {
		m = a.of[model]
	}
	a.mu.Unlock()
	n := uint32(m.tokens)
	if limit > 0 {
		n = min(n, limit)
	}
	return n
}

// keyOf returns the number of a caller's answers of a model.
func keyOf(model, caller uint64) uint64 { return model ^ (caller*0x9e3779b97f4a7c15 + 1) }
