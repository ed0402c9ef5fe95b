package host

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/warmpath/warmpath/sdk/abi"
)

// Strategy is one loaded module with its instances. Safe for concurrent use.
type Strategy struct {
	name, sha256 string
	cfg          Config
	fuel         int64
	memory       int
	pickTime     time.Duration
	clock        func() time.Duration
	options      []byte   // encoded
	kv           KV       // nil = not allowed
	headers      []string // that the module may ask for, in lower case
	log          *slog.Logger
	rt           wazero.Runtime
	compiled     wazero.CompiledModule
	layout       abi.Layout // of the module's version

	notices Notices           // what the module wants to learn outside of its picks
	reasons map[uint16]string // names of its reason codes

	slots   []slot
	retryAt atomic.Int64 // set aside until then, in nanoseconds since started; 0 = in service
	inARow  atomic.Int64 // errors since the last good answer
	slow    atomic.Int64 // slowPicks for each pick that was long or that the clock ended, less one for each good pick since
	started time.Time
	closed  atomic.Bool

	wake       chan struct{} // tells the keeper that a slot wants it
	stop, done chan struct{}

	counts  [reasons]atomic.Uint64 // fallbacks
	restart atomic.Uint64          // instances replaced
	lines   limiter                // of errors in our log
	guest   limiter                // of the module's own lines

	mu      sync.Mutex // guards lastErr, metrics
	lastErr string
	metrics map[string]float64
}

// reason is why the fallback answered.
type reason uint8

const (
	ok reason = iota
	trap
	outOfFuel
	outOfTime
	decline
	badIndex
	busy
	quarantined
	memory
	closed
	noRows
	reasons
)

var reasonNames = [reasons]string{"", "trap", "fuel", "time", "decline", "bad_index", "busy", "quarantined", "memory", "closed", "no_rows"}

// Stats counts what a Strategy did since it was loaded.
type Stats struct {
	Picks       uint64            // answered by the module
	Fallbacks   map[string]uint64 // answered by Fallback, by reason
	Instances   int               // alive now
	Replaced    uint64            // instances discarded after an error
	MemoryBytes uint64            // of all instances' memories
	Quarantined bool
	LastError   string             // of the last trap
	Metrics     map[string]float64 // the module's own counters

	// Notices to the calls that the module wants, by the names of its exports: those that were delivered, well or not, and
	// those that were dropped.
	Delivered, Dropped map[string]uint64
}

// Name is the name the strategy was loaded under.
func (s *Strategy) Name() string { return s.name }

// SHA256 is the hex digest of the module as it was given to Load.
func (s *Strategy) SHA256() string { return s.sha256 }

// Notices returns the queue of what the module wants to learn outside of its picks.
func (s *Strategy) Notices() *Notices { return &s.notices }

// ReasonName returns what the module calls one of its reason codes, "" if it has no name for it.
func (s *Strategy) ReasonName(code uint16) string { return s.reasons[code] }

// Stats gives the counters as of now.
func (s *Strategy) Stats() Stats {
	st := Stats{Fallbacks: map[string]uint64{}, Quarantined: s.retryAt.Load() != 0, Replaced: s.restart.Load(),
		Metrics: map[string]float64{}}
	for i := range s.slots {
		sl := &s.slots[i]
		st.Picks += sl.picks.Load()
		if st1 := sl.state.Load(); st1 == idle || st1 == taken {
			st.Instances++
			st.MemoryBytes += sl.bytes.Load()
		}
	}
	for r := trap; r < reasons; r++ {
		if n := s.counts[r].Load(); n > 0 {
			st.Fallbacks[reasonNames[r]] = n
		}
	}
	st.Delivered, st.Dropped = s.notices.stats()
	s.mu.Lock()
	defer s.mu.Unlock()
	st.LastError = s.lastErr
	for k, v := range s.metrics {
		st.Metrics[k] = v
	}
	return st
}

// Close lets running picks end, then frees the instances and the code. Picks that come later are answered by the
// fallback.
func (s *Strategy) Close(ctx context.Context) {
	if s.closed.Swap(true) {
		return
	}
	close(s.stop)
	<-s.done
	for i := range s.slots {
		sl := &s.slots[i]
		for !sl.state.CompareAndSwap(idle, gone) && !sl.state.CompareAndSwap(empty, gone) {
			time.Sleep(50 * time.Microsecond) // a pick ends within its fuel
		}
		if sl.in != nil {
			sl.in.close()
			sl.in = nil
		}
	}
	_ = s.compiled.Close(ctx)
}

// limiter lets a burst of lines through and then perSecond.
type limiter struct {
	mu     sync.Mutex // guards tokens, last
	tokens float64
	last   time.Time
}

const (
	linesPerSecond = 1
	linesBurst     = 10
)

func (l *limiter) allow() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	l.tokens += now.Sub(l.last).Seconds() * linesPerSecond // the first call has seconds enough to fill it
	l.last = now
	if l.tokens > linesBurst {
		l.tokens = linesBurst
	}
	if l.tokens < 1 {
		return false
	}
	l.tokens--
	return true
}
