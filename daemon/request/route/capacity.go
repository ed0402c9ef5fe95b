package route

import "sync"

// unknownTokens is the assumed KV cache of a worker while neither its metrics nor the configuration give the size:
// about an 8B model on a 40 GB card. Too high a guess would hide that the cache has lost a prompt, so the guess is low
// and learnt upwards.
const unknownTokens = 256 << 10

// capacities keeps each slot's KV cache in tokens and sets it in the index in blocks.
type capacities struct {
	mu    sync.Mutex // guards known, guess
	known map[uint32]int
	guess map[uint32]float64 // factor on unknownTokens, within [1/4, 4]
}

func newCapacities() *capacities {
	return &capacities{known: map[uint32]int{}, guess: map[uint32]float64{}}
}

func (c *capacities) set(slot uint32, tokens int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if tokens <= 0 {
		delete(c.known, slot)
		return
	}
	c.known[slot] = tokens
}

func (c *capacities) tokens(slot uint32) (n int, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n, ok := c.known[slot]; ok {
		return n, true
	}
	f := c.guess[slot]
	if f == 0 {
		f = 1
	}
	return int(f * unknownTokens), false
}

// correct changes a guessed capacity. It compares what a worker found in its cache with what was believed, both in
// tokens of a prompt of length total. The guess falls slowly and rises three times as fast, since half the true size
// costs more than double.
func (c *capacities) correct(slot uint32, found, believed, total int) {
	if total <= 0 {
		return
	}
	d := float64(found-believed) / float64(total)
	if d < 0.02 && d > -0.02 {
		return
	}
	rate := 0.025
	if d > 0 {
		rate = 0.075
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.known[slot]; ok {
		return
	}
	f := c.guess[slot]
	if f == 0 {
		f = 1
	}
	f *= 1 + rate*d
	c.guess[slot] = min(4, max(0.25, f))
}
