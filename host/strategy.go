package host

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/warmpath/warmpath/host/meter"
	"github.com/warmpath/warmpath/sdk/abi"
)

// Strategy is one loaded module with its instances. Safe for concurrent use.
type Strategy struct {
	*program
	notices     Notices // what the module wants to learn outside of its picks
	reasonNames codeNames
	host        *Host
	instances   *instances  // nil: it is no module
	picks       []pickCount // by slot of instances
	quarantine  quarantine
	callers     quarantines // in its place for picks, where rejects is set
	closed      atomic.Bool
	native      nativePick  // nil: it is a module
	before      []*Strategy // of the chain
	filters     []*Strategy // before, and itself if it filters

	wake       bell // wakes the keeper when a slot wants it
	stop, done chan struct{}

	fallbacks [reasons]atomic.Uint64
	discarded atomic.Uint64 // instances
}

// bell wakes one goroutine. A ring while that is busy is kept, and further ones are dropped.
type bell chan struct{}

func (b bell) ring() {
	select {
	case b <- struct{}{}:
	default:
	}
}

// Stats counts what a Strategy did since it was loaded.
type Stats struct {
	Picks     uint64            `json:"picks"`                // answered by the module
	Instances int               `json:"instances"`            // alive now
	Discarded uint64            `json:"traps"`                // instances, each after an error
	Fallbacks map[string]uint64 `json:"fallbacks"`            // answered by Fallback, by reason
	LastError string            `json:"last_error,omitempty"` // of the last trap

	// Calls that the module may not make, by the entry of allow that they lack: "kv", or "headers:" and a name. nil =
	// none.
	Refused map[string]uint64 `json:"refused,omitempty"`

	Files       uint64             `json:"-"` // calls for a file, of which there are none
	MemoryBytes uint64             `json:"-"` // of all instances' memories
	Quarantined bool               `json:"-"`
	Metrics     map[string]float64 `json:"-"` // the module's own counters

	// Notices to the calls that the module wants, by the names of its exports: those that were delivered, well or not, and
	// those that were dropped.
	Delivered map[string]uint64 `json:"-"`
	Dropped   map[string]uint64 `json:"-"`
}

// Name is the name the strategy was loaded under.
func (s *Strategy) Name() string { return s.name }

// SHA256 is the hex digest of the module as it was given to Load.
func (s *Strategy) SHA256() string { return s.sha256 }

// Notices returns the queue of what the module wants to learn outside of its picks.
func (s *Strategy) Notices() *Notices { return &s.notices }

// Wants reports whether the strategy, of which there may be none, asks for any of these: bits as abi.WantCost.
func (s *Strategy) Wants(any uint32) bool { return s != nil && s.notices.wants&any != 0 }

// Binds reports whether the strategy binds sessions, as far as its decisions have shown it. One that does shows it
// before it serves a request: the self-test asks for requests with a session.
func (s *Strategy) Binds() bool { return s.binds.Load() }

// MayExclude reports whether the strategy's decisions may keep a request from workers that they do not name.
func (s *Strategy) MayExclude() bool { return s.native != nil || s.layout.Version >= sinceOnly }

// Behind puts filters before the strategy. Call it before it serves; Close leaves them open.
func (s *Strategy) Behind(filters []*Strategy) {
	s.before = filters
	s.filters = slices.Concat(filters, s.filters)
}

// Filters returns the strategies whose Filter says, one after the other, which workers a request may use before this
// one orders them: those that Behind has set, and itself if it filters too.
func (s *Strategy) Filters() []*Strategy {
	if s == nil { // the pool closes
		return nil
	}
	return s.filters
}

// Chain returns what Behind has set, and the strategy itself; nil for none.
func (s *Strategy) Chain() []*Strategy {
	if s == nil {
		return nil
	}
	return append(slices.Clone(s.before), s)
}

// ChainWants reports whether any strategy of the chain wants one of these. It allocates nothing.
func (s *Strategy) ChainWants(any uint32) bool {
	return s.Wants(any) || s != nil && slices.ContainsFunc(s.before, func(f *Strategy) bool { return f.Wants(any) })
}

// ReasonName returns what the module calls one of its reason codes, "" if it has no name for it.
func (s *Strategy) ReasonName(code uint16) string { return s.reasonNames.of(code) }

// Headers returns the header fields that the module may see, by lower-case name.
func (s *Strategy) Headers() []string { return s.headers }

// Own returns the strategy's numbers, nil if its module imports neither own nor own_of.
func (s *Strategy) Own() *Own { return s.own.Load() }

// Share makes o the strategy's numbers, in the place of those that it has. A strategy without numbers stays so.
func (s *Strategy) Share(o *Own) {
	if s.own.Load() != nil && o != nil {
		s.own.Store(o)
	}
}

// Stats returns the counters as of now.
func (s *Strategy) Stats() Stats {
	now := Stats{Fallbacks: map[string]uint64{}, Discarded: s.discarded.Load(), LastError: s.quarantine.last(),
		Quarantined: s.quarantine.on() || s.callers.on(), Metrics: s.metrics.all(),
		Refused: s.refused.all(), Files: s.files.Load()}
	if s.instances != nil {
		now.Instances, now.MemoryBytes = s.instances.alive()
	}
	for i := range s.picks {
		now.Picks += s.picks[i].n.Load()
	}
	for r := trap; r < reasons; r++ {
		if n := s.fallbacks[r].Load(); n > 0 {
			now.Fallbacks[reasonNames[r]] = n
		}
	}
	now.Delivered, now.Dropped = s.notices.stats()
	return now
}

// pickCount counts the picks of one slot. It has a cache line for itself: one counter for all slots would bounce
// between the cores.
type pickCount struct {
	n atomic.Uint64
	_ [56]byte
}

// start joins the instances of a strategy with the same settings, or makes the first and tries it. It starts the
// keeper, which makes the others.
func (s *Strategy) start(ctx context.Context) error {
	s.quarantine.after, s.quarantine.pause = int64(s.cfg.QuarantineAfter), s.cfg.QuarantineFor
	s.quarantine.log, s.quarantine.started = s.log, time.Now()
	s.quarantine.shadow, s.quarantine.rejects, s.quarantine.lines = s.shadow, s.rejects, new(limiter)
	s.quarantine.lastErr = new(atomic.Pointer[string])
	s.wake, s.stop, s.done = make(bell, 1), make(chan struct{}), make(chan struct{})
	s.notices.wake = s.wake.ring
	of := keyOf(s.program)
	s.instances = s.host.shared.find(of)
	if s.instances != nil {
		s.introduce(s.instances.module)
		s.binds.Store(s.instances.module.binds)
	} else if err := s.makeFirst(ctx, of); err != nil {
		return err
	}
	s.picks = make([]pickCount, len(s.instances.slots))
	if s.cfg.Stepped {
		close(s.done)
		return nil
	}
	s.wake.ring()
	go s.keep(context.WithoutCancel(ctx))
	return nil
}

// makeFirst makes the first instance and tries it.
func (s *Strategy) makeFirst(ctx context.Context, of instancesKey) error {
	in, err := newInstance(ctx, s.program)
	if err != nil {
		return err
	}
	var says introduction
	says.wants, err = readWants(in)
	if err == nil {
		says.reasons, err = readReasons(in)
	}
	if err == nil {
		s.introduce(says)
		err = selfTest(in)
	}
	if err != nil {
		in.close()
		return err
	}
	says.binds = s.binds.Load()
	s.instances = newInstances(of, s.cfg.Slots, in, says)
	if !s.cfg.Stepped { // each strategy of virtual time has its own, whatever else runs
		s.host.shared.offer(s.instances)
	}
	return nil
}

// introduce sets what the module wants and what its reasons are called.
func (s *Strategy) introduce(says introduction) {
	s.notices.wants, s.wants = says.wants, says.wants
	if s.wants&abi.WantFilter != 0 {
		s.filters = []*Strategy{s}
		s.rejects = s.rejects || !s.open
		s.quarantine.rejects = s.rejects
	}
	s.reasonNames.all = says.reasons
	s.reasonNames.fill()
}

// codeNames are the names of a module's reason codes. Every request asks for one.
type codeNames struct {
	low [32]string // those of the lowest codes: a look into a map is ten times as slow
	all map[uint16]string
}

// fill fills low.
func (n *codeNames) fill() {
	for i := range n.low {
		n.low[i] = n.all[uint16(i)]
	}
}

// of returns the name of a code, "" if it has none.
func (n *codeNames) of(code uint16) string {
	if int(code) < len(n.low) {
		return n.low[code]
	}
	return n.all[code]
}

// Close lets running picks end, then frees the instances and the code if no other strategy uses them. Picks that come
// later are answered by the fallback.
func (s *Strategy) Close(ctx context.Context) {
	if s.closed.Swap(true) || s.native != nil {
		return
	}
	close(s.stop)
	<-s.done
	s.host.shared.leave(s.instances)
	s.host.codes.release(ctx, s.code)
	s.host.loaded.end(s)
}

// Surface describes the loaded module. It borrows each instance for a moment, so do not call it while requests are
// served.
func (s *Strategy) Surface() Surface {
	f := Surface{Sockets: s.dials}
	for name := range s.compiled.ExportedFunctions() {
		f.Exports = append(f.Exports, name)
	}
	slices.Sort(f.Exports)
	for _, i := range s.compiled.ImportedFunctions() {
		if module, name, _ := i.Import(); module != meter.Module { // that one is ours
			f.Imports = append(f.Imports, module+"."+name)
		}
	}
	slices.Sort(f.Imports)
	for i := range s.instances.slots {
		if sl := &s.instances.slots[i]; sl.borrow(s.program) {
			f.MemoryBytes = max(f.MemoryBytes, uint64(sl.in.mem.Size()))
			sl.state.Store(idle)
		}
	}
	return f
}

// Leftover returns what the last pick, of f, has left in the frame of the first instance. For a strategy of one slot,
// between its picks; false if its instance is gone.
func (s *Strategy) Leftover(f *Frame) (l Leftover, ok bool) {
	sl := &s.instances.slots[0]
	if !sl.borrow(s.program) {
		return l, false
	}
	defer sl.state.Store(idle)
	return leftoverOf(sl.in, f)
}
