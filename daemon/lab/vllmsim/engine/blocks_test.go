package engine

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// slowPool is the oracle: the free queue is a slice, everything is found by looking at everything.
type slowPool struct {
	queue []int32 // free blocks, next to be taken first
	hash  map[int32]uint64
	order []int32 // blocks in the order in which they got their hash
	refs  map[int32]int
}

func newSlowPool(n int) *slowPool {
	p := &slowPool{hash: map[int32]uint64{}, refs: map[int32]int{}}
	for i := 1; i < n; i++ {
		p.queue = append(p.queue, int32(i))
	}
	return p
}

func (p *slowPool) match(hashes []uint64) (held []int32) {
	for _, h := range hashes {
		k := slices.IndexFunc(p.order, func(i int32) bool { return p.hash[i] == h })
		if k < 0 {
			break
		}
		held = append(held, p.order[k])
	}
	return held
}

func (p *slowPool) hold(held []int32) {
	for _, i := range held {
		p.queue = slices.DeleteFunc(p.queue, func(j int32) bool { return i == j })
		p.refs[i]++
	}
}

func (p *slowPool) pop(n int) (out []int32) {
	out = append(out, p.queue[:n]...)
	p.queue = p.queue[n:]
	for _, i := range out {
		delete(p.hash, i)
		p.order = slices.DeleteFunc(p.order, func(j int32) bool { return i == j })
		p.refs[i] = 1
	}
	return out
}

func (p *slowPool) enter(i int32, h uint64) {
	p.hash[i] = h
	p.order = append(p.order, i)
}

func (p *slowPool) release(held []int32) {
	for _, i := range slices.Backward(held) {
		if p.refs[i]--; p.refs[i] > 0 {
			continue
		}
		if _, full := p.hash[i]; full {
			p.queue = append(p.queue, i)
		} else {
			p.queue = slices.Insert(p.queue, 0, i)
		}
	}
}

// queueOf lists a pool's free queue and checks its links.
func queueOf(t *testing.T, p *blockPool) (out []int32) {
	t.Helper()
	last := int32(0)
	for i := p.head; i != 0; i = p.blocks[i].next {
		if p.blocks[i].prev != last || p.blocks[i].refs != 0 {
			t.Fatalf("block %d: prev %d after %d, %d references", i, p.blocks[i].prev, last, p.blocks[i].refs)
		}
		last = i
		out = append(out, i)
	}
	if last != p.tail || len(out) != p.free {
		t.Fatalf("queue ends at %d with %d blocks; tail %d, free %d", last, len(out), p.tail, p.free)
	}
	return out
}

// TestPoolAgainstOracle plays random prompts, short of a shared tree, against both pools; they must hold the same
// blocks.
func TestPoolAgainstOracle(t *testing.T) {
	type holder struct{ blocks []int32 }
	for seed := range uint64(30) {
		rng := rand.New(rand.NewPCG(seed, 1))
		p, o := newBlockPool(40), newSlowPool(40)
		var live []holder
		for range 400 {
			if rng.IntN(3) == 0 && len(live) > 0 {
				k := rng.IntN(len(live))
				p.release(live[k].blocks)
				o.release(live[k].blocks)
				live = slices.Delete(live, k, k+1)
				continue
			}
			hashes := make([]uint64, 1+rng.IntN(8))
			h := uint64(0)
			for i := range hashes {
				h = Mix(h, uint64(rng.IntN(2)))
				hashes[i] = h
			}
			got, idle := p.match(hashes[:len(hashes)-rng.IntN(2)], nil)
			want := o.match(hashes[:max(len(got), len(hashes)-1)])
			if len(got) == len(hashes) {
				want = o.match(hashes)
			}
			if !slices.Equal(got, want) {
				t.Fatalf("seed %d: match got %v, want %v", seed, got, want)
			}
			need := len(hashes) - len(got)
			if need+idle > p.free {
				continue
			}
			p.hold(got)
			o.hold(want)
			got, want = p.pop(need, got), append(want, o.pop(need)...)
			if !slices.Equal(got, want) {
				t.Fatalf("seed %d: took %v, want %v", seed, got, want)
			}
			for i := len(got) - need; i < len(got); i++ {
				p.enter(got[i], hashes[i])
				o.enter(got[i], hashes[i])
			}
			live = append(live, holder{got})
			if q := queueOf(t, p); !slices.Equal(q, o.queue) || p.cached != len(o.order) {
				t.Fatalf("seed %d: queue %v with %d cached, want %v with %d", seed, q, p.cached, o.queue, len(o.order))
			}
		}
		for _, l := range live {
			p.release(l.blocks)
		}
		if got := len(queueOf(t, p)); got != p.usable() {
			t.Fatalf("seed %d: %d blocks free at the end, want %d", seed, got, p.usable())
		}
	}
}

func TestPoolTakesLeavesFirst(t *testing.T) {
	p := newBlockPool(5)
	old := p.pop(4, nil)
	for i, b := range old {
		p.enter(b, uint64(i+1))
	}
	p.release(old)
	p.pop(2, nil)
	if held, _ := p.match([]uint64{1, 2, 3, 4}, nil); len(held) != 2 {
		t.Errorf("after two blocks were taken %d of four match, want the first 2", len(held))
	}
}
