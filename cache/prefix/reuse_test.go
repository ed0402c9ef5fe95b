package prefix

import (
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"time"
)

func close2(a, b float64) bool { return math.Abs(a-b) < 1e-9 }

func TestReusePrior(t *testing.T) {
	r := NewReuse(1000, nil)
	for _, s := range []float64{0, .5, 7, 60, 3600} {
		if got, want := r.R(time.Duration(s*1e9)), math.Exp(-s/60); !close2(got, want) {
			t.Errorf("R(%v s) = %v; want %v", s, got, want)
		}
	}
	if got := r.R(-time.Second); got != 1 {
		t.Errorf("R of a negative age is %v; want 1", got)
	}
}

// simple computes R by its definition: a list of blocks with their last use, no tree and no curve.
type simple struct {
	capacity int
	order    map[uint64]int64
	at       map[uint64]float64
	tick     int64
	ages     []float64 // seconds
	tokens   []float64
	dead     float64
}

func (s *simple) note(chain []uint64, tokens, now float64) {
	found, last := 0, 0.0
	for _, h := range chain {
		if _, ok := s.order[h]; !ok {
			break
		}
		found, last = found+1, s.at[h]
	}
	for i := len(chain) - 1; i >= 0; i-- {
		s.tick++
		s.order[chain[i]], s.at[chain[i]] = s.tick, now
	}
	for len(s.order) > s.capacity {
		oldest, at := uint64(0), s.tick+1
		for h, k := range s.order {
			if k < at {
				oldest, at = h, k
			}
		}
		delete(s.order, oldest)
	}
	for i := range s.tokens {
		s.tokens[i] *= 1 - 1./300
	}
	s.dead = s.dead*(1-1./300) + float64(len(chain)-found)*tokens
	if 2*found > len(chain) {
		s.ages, s.tokens = append(s.ages, now-last), append(s.tokens, float64(found)*tokens)
	}
}

// r returns R at the edges of buckets, where no interpolation is needed.
func (s *simple) r(age float64) float64 {
	beyond := 0.0
	for i, a := range s.ages {
		if a >= age {
			beyond += s.tokens[i]
		}
	}
	return beyond / (beyond + s.dead)
}

func TestReuseAgainstDefinition(t *testing.T) {
	now := time.Unix(1000, 0)
	start := now
	r := NewReuse(300, func() time.Time { return now })
	s := &simple{capacity: 300, order: map[uint64]int64{}, at: map[uint64]float64{}}
	rnd := rand.New(rand.NewPCG(5, 5))
	var earlier [][]byte
	for i := range 2000 {
		now = now.Add(time.Duration(rnd.ExpFloat64() * 1.37e9))
		chain := chained(contents(rnd, &earlier))
		if len(chain) == 0 {
			continue
		}
		r.Note(chain, 16)
		s.note(chain, 16, now.Sub(start).Seconds())
		if i == 1000 { // as after 68,000 requests: the weights are scaled down soon
			factor := heaviest / 5 / r.weight
			for k := range r.gaps {
				r.gaps[k] *= factor
			}
			r.dead *= factor
			r.weight *= factor
		}
		if i < 100 || r.noted >= often && r.noted%drawEvery != 0 {
			continue
		}
		for _, edge := range []float64{0, 1, 2, 4, 8, 16, 32, 64, 128} {
			if got, want := r.R(time.Duration(edge*1e9)), s.r(edge); !close2(got, want) {
				t.Fatalf("request %d: R(%v s) = %v; want %v", i, edge, got, want)
			}
		}
	}
	if r.weight > heaviest/1e3 {
		t.Errorf("the last request weighs %v", r.weight)
	}
	last := 1.0
	for age := time.Duration(0); age < time.Hour; age += 100 * time.Millisecond {
		v := r.R(age)
		if v > last+1e-12 || v < 0 {
			t.Fatalf("R(%v) = %v after %v; want it falling", age, v, last)
		}
		last = v
	}
	if r.R(0) < .05 {
		t.Errorf("R(0) = %v: the population reuses nothing, so this test shows nothing", r.R(0))
	}
}

func TestReuseTogether(t *testing.T) {
	r := NewReuse(500, nil)
	var wg sync.WaitGroup
	for g := range uint64(4) {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(g, 9))
			var earlier [][]byte
			for i := range 1000 {
				r.Note(chained(contents(rnd, &earlier)), 16)
				if v := r.R(time.Duration(i) * time.Millisecond); !(v >= 0 && v <= 1) {
					t.Errorf("R = %v", v)
				}
				if i%100 == 0 {
					r.SetCapacity(300 + i)
				}
			}
		})
	}
	wg.Wait()
	sound(t, r.index)
}

// Chats of up to some thousand blocks: R from thinned chains equals R from all blocks, except for the rounding.
func TestReuseThinned(t *testing.T) {
	now := time.Unix(1000, 0)
	r := NewReuse(1<<20, func() time.Time { return now })
	s := &simple{capacity: 1 << 20, order: map[uint64]int64{}, at: map[uint64]float64{}}
	rnd := rand.New(rand.NewPCG(7, 7))
	chats := make([][]uint64, 12)
	for i := range 600 {
		now = now.Add(time.Duration(rnd.ExpFloat64() * 1e9))
		k := rnd.IntN(len(chats))
		if rnd.IntN(9) == 0 {
			chats[k] = nil
		}
		for range 20 + rnd.IntN(400) {
			chats[k] = append(chats[k], rnd.Uint64())
		}
		r.Note(chats[k], 16)
		s.note(chats[k], 16, now.Sub(time.Unix(1000, 0)).Seconds())
		if i < often || r.noted%drawEvery != 0 {
			continue
		}
		for _, edge := range []float64{0, 1, 2, 4, 8, 16, 32} {
			if got, want := r.R(time.Duration(edge*1e9)), s.r(edge); math.Abs(got-want) > .01 {
				t.Fatalf("request %d: R(%v s) = %v; want %v", i, edge, got, want)
			}
		}
	}
	if blocks := r.index.Worker(0).Blocks; blocks > len(s.order)/5 {
		t.Errorf("%d blocks are remembered of %d", blocks, len(s.order))
	}
}

func TestThinned(t *testing.T) {
	chain := make([]uint64, 200)
	for i := range chain {
		chain[i] = uint64(i)
	}
	for n := range chain {
		few := thinned(nil, chain[:n])
		if got := whole(len(few)); got > n || got <= n-apart {
			t.Errorf("%d remembered blocks of %d stand for %d", len(few), n, got)
		}
		for i, h := range few {
			if whole(i+1) != int(h)+1 {
				t.Fatalf("remembered block %d is block %d; want %d", i, h, whole(i+1)-1)
			}
		}
	}
}
