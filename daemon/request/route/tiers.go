package route

import (
	"cmp"
	"sync/atomic"
	"time"

	"github.com/warmpath/warmpath/cache/prefix"
	"github.com/warmpath/warmpath/daemon/fleet/worker"
)

// Tiers is what lies below the GPUs of a pool's workers. How much CPU memory a worker has for KV stands in its Spec.
type Tiers struct {
	SharedTokens int        // KV that the tier shared by all workers holds; 0 = Store returns it
	Store        func() int // returns the same; each Tick calls it; nil = there is none
	L1Rate       float64    // tokens a second that come from a worker's CPU memory; 0 = 120,000
	L2Rate       float64    // tokens a second that come from the shared tier; 0 = 40,000
}

// The rates of the simulation that the score was chosen by.
const (
	defaultL1Rate = 120_000
	defaultL2Rate = 40_000
)

// lower is the routed history of the tiers below the GPUs. What is written to a GPU is taken to be written to these as
// well, and to stay for as long as their own size allows. So each has an index of its own: one walk over the GPU's
// index with a larger capacity would not know which tier holds what.
type lower struct {
	cpu, shared below // cpu has a slot for each worker, shared the slot 0
	set         atomic.Pointer[Tiers]
}

// below is one of these tiers. Nobody reads its index before a worker has the tier.
type below struct {
	index *prefix.Index
	on    atomic.Bool
}

// newLower makes the history of the tiers, in indexes of that clock.
func newLower(t Tiers, c prefix.Config) *lower {
	l := new(lower)
	l.configure(t)
	l.cpu.index = prefix.New(c)
	c.Workers = 1
	l.shared.index = prefix.New(c)
	return l
}

func (l *lower) configure(t Tiers) {
	t.L1Rate, t.L2Rate = cmp.Or(t.L1Rate, defaultL1Rate), cmp.Or(t.L2Rate, defaultL2Rate)
	l.set.Store(&t)
}

// fit sets the sizes of the tiers, in blocks of text of so many tokens.
func (l *lower) fit(workers []worker.Stats, block float64) {
	for i := range workers {
		if n := workers[i].CPUTokens; n > 0 {
			l.cpu.index.SetCapacity(workers[i].Slot, max(1, int(float64(n)/block)))
			l.cpu.on.Store(true)
		}
	}
	shared := l.sharedTokens()
	if shared > 0 {
		l.shared.index.SetCapacity(0, max(1, int(float64(shared)/block)))
	}
	l.shared.on.Store(shared > 0)
}

// sharedTokens returns the size of the tier that all workers share; 0 = there is none, or nobody knows yet.
func (l *lower) sharedTokens() int {
	t := l.set.Load()
	if t.SharedTokens > 0 || t.Store == nil {
		return t.SharedTokens
	}
	return t.Store()
}

// spaces is where a model's prompts are known in the tiers below the GPUs; nil where there is no such tier.
type spaces struct{ cpu, shared *prefix.Namespace }

func (l *lower) spaces(id uint64) (s spaces) {
	if l.cpu.on.Load() {
		s.cpu = l.cpu.index.Space(id)
	}
	if l.shared.on.Load() {
		s.shared = l.shared.index.Space(id)
	}
	return s
}

// mostHolders bounds the holders of a prompt among which candidates are chosen.
const mostHolders = 256

// holders appends the workers that hold a chain in their CPU memory to those that hold it on their GPUs.
func (l *lower) holders(space uint64, chain []uint64, into []prefix.Holder) []prefix.Holder {
	if !l.cpu.on.Load() {
		return into
	}
	return l.cpu.index.Space(space).Holders(chain, mostHolders, into)
}

// touch enters a chain that a worker computed or had some time ago.
func (s *spaces) touch(w *worker.Worker, chain []uint64, ago time.Duration) {
	if s.cpu != nil && w.CPUTokens() > 0 {
		s.cpu.TouchAgo(w.Slot(), chain, ago)
	}
	if s.shared != nil {
		s.shared.TouchAgo(0, chain, ago)
	}
}

// enter enters a chain that a worker is about to compute. It returns how much of it the tiers held before, and when.
func (s *spaces) enter(w *worker.Worker, chain []uint64) (cpu, shared uint32, at int64) {
	if s.cpu != nil && w.CPUTokens() > 0 {
		cpu, at = s.cpu.Enter(w.Slot(), chain)
	}
	if s.shared != nil {
		shared, at = s.shared.Enter(0, chain)
	}
	return cpu, shared, at
}

// retract takes back what enter entered.
func (s *spaces) retract(w *worker.Worker, chain []uint64, cpu, shared uint32, at int64) {
	if s.cpu != nil && w.CPUTokens() > 0 {
		s.cpu.Retract(w.Slot(), chain, cpu, at)
	}
	if s.shared != nil {
		s.shared.Retract(0, chain, shared, at)
	}
}

// fill writes into the rows what they have below the GPU, in blocks of text of so many tokens.
func (l *lower) fill(f *fleet, s *spaces, chain []uint64, reuse *prefix.Reuse, text float64) {
	if s.cpu == nil && s.shared == nil {
		return
	}
	t, h, shared := l.set.Load(), &f.frame.Header, uint32(0)
	h.InvBWL1 = float32(1 / t.L1Rate)
	if s.shared != nil {
		h.InvBWL2 = float32(1 / t.L2Rate)
		shared = s.shared.MatchOne(chain, 0)
	}
	if s.cpu == nil { // the score asks for a first tier where there is a second: the shared one is both
		h.InvBWL1 = h.InvBWL2
	} else {
		s.cpu.Match(chain, f.slots, f.matched)
		l.cpu.index.WorkersInto(f.slots, f.caches)
	}
	for i := range f.frame.Rows {
		row, held := &f.frame.Rows[i], f.frame.Rows[i].GPU
		if s.cpu != nil && f.workers[i].CPUTokens() > 0 {
			c := &f.caches[i]
			row.L1 = max(held, f.matched[i]) - held
			row.FreeL1 = float32(float64(c.Capacity-c.Blocks) * text)
			if c.HasTail {
				row.ReuseL1 = float32(reuse.R(c.TailAge))
			}
		}
		held += row.L1
		row.L2 = max(held, shared) - held
	}
}
