package prefix

import (
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// Reuse learns R(age): the chance that a block which was not requested during age is requested again. It remembers the
// blocks of all requests of the fleet in one LRU of about twice the fleet's KV. It weighs the blocks that come back, by
// the gap since their last request, against new ones, and forgets over some 300 requests. Safe for concurrent use.
//
// The LRU is a run tree with one worker, the fleet, so a request costs one touch. A table of block hashes would cost a
// map access a block: some 200 us for a 64k prompt. Reuse keeps the first blocks of a long chain, and one of eight of
// the others (thinned), since the copy of a prompt of 256 KB was 2 % of the whole cost of its request, and its
// collection 1 %.
type Reuse struct {
	now   func() time.Time
	start time.Time
	index *Index
	all   *Namespace

	mu     sync.Mutex // guards gaps, dead, weight, noted and few; taken before index's
	gaps   [buckets]float64
	dead   float64
	weight float64 // of the last request; the first has 1
	noted  int
	few    []uint64 // a thinned chain of NoteAgo

	warmed atomic.Bool
	curve  [buckets + 1]atomic.Uint64 // R at the lower edge of each bucket, float64 bits; read without a lock
}

const (
	buckets   = 64 // [0,1 s), then 3 an octave: up to 24 days
	perOctave = 3

	dense = 64 // leading blocks of a chain that are all kept
	apart = 8  // after those, one block in eight is kept

	decay = 1 - 1./300
	warm  = 30 // requests, a tenth of the memory, before the prior gives way

	heaviest  = 1e100 // a weight that floats can still add to, after 69,000 requests
	drawEvery = 8     // the curve is drawn anew for each request at first, then for each eighth
	often     = 150   // requests; after them one more changes the curve by less than 1 %
)

// NewReuse makes a Reuse that remembers capacityBlocks blocks: give it twice the fleet's KV. now may be nil.
func NewReuse(capacityBlocks int, now func() time.Time) *Reuse {
	if now == nil {
		now = time.Now
	}
	r := &Reuse{now: now, start: now(), weight: 1, index: New(Config{Workers: 1})}
	r.all = r.index.Namespace("")
	r.SetCapacity(capacityBlocks)
	return r
}

// SetCapacity sets how many blocks the LRU remembers, after the fleet has changed. Long chains are thinned, so that the
// LRU reaches further back.
func (r *Reuse) SetCapacity(blocks int) { r.index.SetCapacity(0, blocks) }

// Note records a request as it is sent: its prompt's chain, of blocks of blockTokens tokens. The chain's seed must
// differ between namespaces, since all of them share this LRU.
func (r *Reuse) Note(chain []uint64, blockTokens float64) { r.NoteAgo(chain, blockTokens, 0) }

// NoteAgo is Note for a request that was sent some time ago.
func (r *Reuse) NoteAgo(chain []uint64, blockTokens float64, ago time.Duration) {
	if len(chain) == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	now := int64(r.now().Sub(r.start) - ago)
	r.few = thinned(r.few[:0], chain)
	t := r.all.touch(0, r.few, now)
	found := len(chain)
	if t.found < len(r.few) {
		found = whole(t.found)
	}
	r.weigh()
	r.dead += float64(len(chain)-found) * blockTokens * r.weight
	if 2*found > len(chain) {
		at, _ := bucket(time.Duration(now - t.stamp))
		r.gaps[at] += float64(found) * blockTokens * r.weight
	}
	r.noted++
	if r.noted < warm || r.noted >= often && r.noted%drawEvery != 0 {
		return
	}
	r.draw()
	r.warmed.Store(true)
}

// thinned appends to few the blocks of a chain that are kept: all of the first ones, then the last of each eight. A
// hash covers all blocks before its own. So two chains share as many of all blocks as of these, to within seven.
func thinned(few, chain []uint64) []uint64 {
	few = append(few, chain[:min(dense, len(chain))]...)
	for i := dense + apart - 1; i < len(chain); i += apart {
		few = append(few, chain[i])
	}
	return few
}

// whole returns the number of blocks for which that many kept ones stand.
func whole(few int) int { return few + max(0, few-dense)*(apart-1) }

// Gaps is the learnt state of a Reuse, in a form from which another process can start: the tokens requested again by
// the time between, and the new tokens, over about so many requests.
type Gaps struct {
	Again [buckets]float64
	New   float64
	Noted int
}

// Gaps returns what was learnt.
func (r *Reuse) Gaps() (g Gaps) {
	r.mu.Lock()
	defer r.mu.Unlock()
	g.Noted, g.New = r.noted, r.dead/r.weight
	for i, v := range r.gaps {
		g.Again[i] = v / r.weight
	}
	return g
}

// Start continues with the learnt state of an earlier process. It does nothing after the first request.
func (r *Reuse) Start(g *Gaps) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.noted > 0 || g.Noted < warm {
		return
	}
	r.gaps, r.dead, r.noted = g.Again, g.New, g.Noted
	r.draw()
	r.warmed.Store(true)
}

// weigh gives a request a greater weight than the last one had. That is the same as a smaller weight for all earlier
// ones, since R is a ratio.
func (r *Reuse) weigh() {
	r.weight /= decay
	if r.weight < heaviest {
		return
	}
	for i := range r.gaps {
		r.gaps[i] /= r.weight
	}
	r.dead /= r.weight
	r.weight = 1
}

// prior is R before any request.
func prior(seconds float64) float64 { return math.Exp(-seconds / 60) }

// draw computes R at every edge.
func (r *Reuse) draw() {
	beyond := 0.0
	for i := buckets; i >= 0; i-- {
		if i < buckets {
			beyond += r.gaps[i]
		}
		v := 0.0
		if beyond > 0 {
			v = beyond / (beyond + r.dead)
		}
		r.curve[i].Store(math.Float64bits(v))
	}
}

// R returns the chance for a block last requested age ago. It interpolates between the edges of the bucket, and returns
// exp(-age/60 s) before 30 requests are noted. It takes no lock: a pick calls it once for every worker.
func (r *Reuse) R(age time.Duration) float64 {
	if !r.warmed.Load() {
		return prior(max(0, age.Seconds()))
	}
	i, part := bucket(age)
	a, b := math.Float64frombits(r.curve[i].Load()), math.Float64frombits(r.curve[i+1].Load())
	return a + (b-a)*part
}

// bucket returns the age's bucket and how far into it the age is, 0..1.
func bucket(age time.Duration) (int, float64) {
	s := age.Seconds()
	if s < 1 {
		return 0, max(0, s)
	}
	i, part := math.Modf(1 + perOctave*math.Log2(s))
	return min(int(i), buckets-1), part
}
