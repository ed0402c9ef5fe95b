package lmcache

import (
	"slices"
	"sync"
	"sync/atomic"
)

// learner finds out how each instance computes its keys: it computes the first chunk's key of recent prompts in every
// way that a release knows, until one is among the chunks that the instance admits. A match in 64 bits is no accident.
type learner struct {
	forms  []Variant // with their chunk sizes
	unsure atomic.Int32

	mu      sync.Mutex // guards prompts, next and seen
	prompts [recent][]uint32
	next    int
	seen    uint64 // prompts kept, ever
}

const (
	recent    = 32   // prompts that are kept
	longest   = 2048 // tokens of each: 256 KB in all
	notBefore = 16   // tokens; LMCache's chunks are no smaller
)

// chunkSizes are tried where the configuration gives none; 256 is LMCache's default.
var chunkSizes = []int{256, 128, 512, 64, 32, 16, 1024, 2048}

// newLearner tries the algorithms named, all if none is, with one chunk size or, for 0, the usual ones.
func newLearner(seed uint32, algorithms []Algorithm, chunk int) *learner {
	sizes := chunkSizes
	if chunk > 0 {
		sizes = []int{chunk}
	}
	l := &learner{}
	for _, n := range sizes {
		for _, v := range forms(seed) {
			if len(algorithms) == 0 || slices.Contains(algorithms, v.Algorithm) {
				v.Chunk = n
				l.forms = append(l.forms, v)
			}
		}
	}
	return l
}

// observe keeps the start of a prompt while an instance is not understood.
func (l *learner) observe(ids []uint32) {
	if l.unsure.Load() == 0 || len(ids) < notBefore {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	ids = ids[:min(len(ids), max(longest, l.forms[0].Chunk))]
	for _, p := range l.prompts {
		if slices.Equal(p, ids) {
			return
		}
	}
	l.prompts[l.next] = append(l.prompts[l.next][:0], ids...)
	l.next = (l.next + 1) % recent
	l.seen++
}

// snapshot returns the kept prompts, the newest first, and how many there were ever.
func (l *learner) snapshot() (prompts [][]uint32, seen uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for n := range recent {
		if p := l.prompts[(l.next-1-n+2*recent)%recent]; len(p) > 0 {
			prompts = append(prompts, slices.Clone(p))
		}
	}
	return prompts, l.seen
}

// find returns the variant by which a key of one of the prompts is held, or nil.
func (l *learner) find(prompts [][]uint32, holds func(v *Variant, key uint64) bool) *Variant {
	for n := range l.forms {
		v := &l.forms[n]
		h, err := newHasher(*v)
		if err != nil {
			return nil
		}
		for _, ids := range prompts {
			if len(ids) < v.Chunk {
				continue
			}
			h.reset()
			if holds(v, h.next(ids[:v.Chunk])) {
				return v
			}
		}
	}
	return nil
}

// pupil remembers what was tried in vain, so that the same is not tried again.
type pupil struct{ tried map[*instance]trial }

type trial struct{ admits, prompts uint64 }

// study looks for the variant of each instance that is not understood, if it or the prompts have something new.
func (p *pupil) study(f *fleet, l *learner) {
	unsure := f.unsure()
	l.unsure.Store(int32(len(unsure)))
	if len(unsure) == 0 {
		p.tried = nil
		return
	}
	prompts, seen := l.snapshot()
	tried := map[*instance]trial{}
	for _, i := range unsure {
		now := trial{admits: i.admits.Load(), prompts: seen}
		tried[i] = now
		if now.admits == 0 || now == p.tried[i] {
			continue
		}
		v := l.find(prompts, func(v *Variant, key uint64) bool {
			if model := i.model.Load(); model != 0 {
				key = spread(key, model, 0)
			}
			return f.dir.holds(key, i)
		})
		f.learnt(i, v, now.admits, now.prompts)
	}
	p.tried = tried
}
