package worker

import (
	"slices"
	"time"

	"github.com/warmpath/warmpath/cache/prefix"
	"github.com/warmpath/warmpath/daemon/fleet/judge"
	"github.com/warmpath/warmpath/daemon/fleet/labels"
	"github.com/warmpath/warmpath/daemon/fleet/models"
	"github.com/warmpath/warmpath/daemon/fleet/order"
	"github.com/warmpath/warmpath/sdk/abi"
)

// Query describes the request that a Snapshot is for.
type Query struct {
	Model string    // "" fits every worker
	Fence Fence     // labels of the workers that alone may take it
	Only  *Allowed  // that alone may take it
	From  *Worker   // broke off: only others that list the same model can go on with its answer; nil = it is no such rest
	Bound string    // id of the worker of the request's session: neither slow start nor a drain hides it
	Again bool      // other workers have failed the request: slow start hides no worker
	Wide  bool      // all workers that are up are offered, those of Count.Hidden too
	Tried []*Worker // that have had the request: they hide nobody who takes only what nobody else does
	Rank  int       // 1 + the data-parallel rank that alone may take it, of an address that has it; 0 = any
	Need  int       // tokens that it surely has: a worker of a shorter max_model_len is TooShort; 0 = not known
	Waits bool      // it may wait for a worker that is longer than all of the pool
	Tied  bool      // only Bound can serve its session: Bound is never TooShort
	Class uint8     // of the request's Dispatch
	Spare bool      // it need not be served: nobody gets it who is only suspected of being up, or is not
	Half  bool      // another worker answers it: one that hands nothing over gets it last, and only if it must be served
	Full  bool      // also workers without room get a row, for one who only wants to know what they hold
	At    time.Time

	Holds     int       // tokens of KV that it takes, those of Beginning too; 0 = not known
	Beginning Beginning // of its prompt

	Count *Count // Snapshot writes there how many workers can take it; nil = not wanted

	// Few has Snapshot leave workers out in a large pool: all but candidates. Of these are the workers whose keys stand in
	// Near, and Holders. It leaves nobody out if no candidate can take the request, or with Again, Wide, Full, Only or
	// From.
	Few     bool
	Turn    uint64          // 1 + the request's number, if the strategy may give the workers turns; 0 = it does not
	Near    [3]uint64       // 0 = none
	Holders []prefix.Holder // of the prompt, those that hold the most first
	Means   *abi.Header     // gets how many were left out, and the means of all that take requests; nil = not wanted
}

// shot is one call of Snapshot. The pool's lock is held throughout.
type shot struct {
	Query
	fleet    *fleet
	moment   moment
	inside   labels.Fence    // of Fence
	met      bool            // some worker is inside
	listing  *models.Listing // of the worker before: a fleet mostly shares one, so the model is looked up once
	lists    bool            // it has the model; true while listing is nil
	weight   float64         // of all workers that are up; 0 = not summed yet
	among    []*Worker       // are looked at
	cohort   *cohort         // of which these are candidates; nil = all are looked at
	rows     []abi.Row
	workers  []*Worker
	standing Standing
	hidden   bool    // the last pass has offered somebody, and not all that are up
	adapter  bool    // the model is a LoRA adapter
	turn     *Worker // whose turn it is
	short    int     // the length of the longest worker that is too short
	eased    bool    // a worker has room: those with more prefill queued than MaxWait are offered too
}

// mode selects the workers that a pass may offer.
type mode uint8

const (
	inTurn    mode = iota
	outOfTurn      // also those held back by slow start
	crowded        // also those that refused a request a moment ago
	trusting       // also those that are only suspected
	blind          // also those that are not up
)

// take appends a row for each worker that may take the request.
func (s *shot) take() {
	s.standing = Lacking
	first := s.first()
	s.eased = s.fleet.conf.MaxWait > 0 && s.hasRoom(first)
	s.takeBy(first)
	switch s.standing {
	case Held: // slow start holds back all that there are
		s.takeBy(outOfTurn)
	case Crowded: // all that there are say that they are full: one of them says so itself, if it still is
		s.takeBy(crowded)
	case Silent: // suspicion is not a reason to refuse a request that no other worker takes
		if !s.Spare {
			s.takeBy(trusting)
		}
	}
	if (s.standing == Down || s.standing == Starting) && s.fleet.conf.Panic && !s.Spare {
		s.takeBy(blind)
	}
	switch {
	case len(s.fleet.workers) == 0:
		s.standing = Down
	case !s.met:
		s.standing = Fenced
	}
}

// first returns the mode of the first pass.
func (s *shot) first() mode {
	switch {
	case s.Wide && s.Spare:
		return crowded
	case s.Wide:
		return trusting
	case s.Again:
		return outOfTurn
	}
	return inTurn
}

// concerns reports whether a worker lists the request's model, or may load it, and has its rank.
func (s *shot) concerns(w *Worker) bool {
	if w.listing != s.listing {
		s.listing = w.listing
		s.lists = w.listing.Fits(s.Model)
	}
	return (s.lists || s.adapter && loads(s.fleet, w.url, s.Model)) && (s.Rank == 0 || !w.otherRank(s.Rank-1))
}

func (s *shot) takeBy(m mode) {
	s.hidden = false
	for _, w := range s.among {
		if s.outside(w) {
			continue
		}
		s.met = true
		if !s.concerns(w) {
			continue
		}
		if w.health.HasProven(s.moment.now) {
			s.fleet.closeBreaker(w.endpoint, s.moment.now)
		}
		tried := len(s.Tried) > 0 && slices.Contains(s.Tried, w)
		if tried && m > outOfTurn { // it has its row
			continue
		}
		standing := s.fit(w, s.judge(w, m))
		if tried && standing == Crowded { // it may be asked once more, if no other worker is left
			standing = Ready
		}
		if standing == Panicked && s.standing != Panicked && !s.Full {
			s.fleet.countPanic()
		}
		if standing != s.standing && !tried {
			s.standing = s.standing.nearer(standing)
		}
		if standing != Ready && standing != Panicked {
			s.hidden = s.hidden || standing == Held || standing == Crowded || standing == Silent
			continue
		}
		w.offered = m >= trusting || s.Full && w.offered
		s.rows = append(s.rows, abi.Row{})
		w.fill(&s.rows[len(s.rows)-1], &s.moment)
		if s.adapter {
			known := stockOf(s.fleet, w, s.Model, &s.moment)
			s.rows[len(s.rows)-1].State |= known.State(s.Model)
		}
		s.workers = append(s.workers, w)
	}
}

// judge returns Ready if a worker that lists the model can be offered, and else the reason why not.
func (s *shot) judge(w *Worker, m mode) Standing {
	bound := s.Bound != "" && w.id == s.Bound
	switch {
	case m == blind && w.closed():
		return Draining
	case m != blind && !w.takes(s.moment.now) && !(bound && w.keeps(s.moment.now)) &&
		!(m == trusting && s.fleet.lastResort(w)):
		return s.absence(w)
	case !s.Full && w.packed(&s.fleet.conf.limits, s.Holds, &s.Beginning), s.backlogged(w, bound):
		return Full
	case m == blind:
		return Panicked
	}
	if !bound {
		if refused := s.refuses(w, m); refused != Ready {
			return refused
		}
	}
	if m == inTurn && w.slowStart.Holds() && !s.due(w) && !bound {
		return Held
	}
	return Ready
}

// refuses returns Ready unless the worker's own refusals keep the request from it.
func (s *shot) refuses(w *Worker, m mode) Standing {
	switch {
	case m < trusting && w.health.Refuses(s.Class%judge.Classes, s.moment.now),
		s.Half && m < trusting && w.health.IsUnpaired(s.moment.now):
		return Silent
	case m < crowded && !w.health.HasRoom(w.endpoint.present(), s.moment.now):
		return Crowded
	}
	return Ready
}

// hasRoom reports whether some worker takes the request at once.
func (s *shot) hasRoom(m mode) bool {
	return slices.ContainsFunc(s.fleet.workers, func(w *Worker) bool {
		return !s.outside(w) && s.concerns(w) && s.judge(w, m) == Ready
	})
}

// backlogged reports whether a worker is not offered for the prefill that is queued there. While another worker has
// room it is offered: its row shows the wait, and the strategy, which knows the prompt, decides
// (Dispatch.Backlogged). A session that can go nowhere else waits until it has room.
func (s *shot) backlogged(w *Worker, bound bool) bool {
	return !s.Full && (!s.eased || s.Tied && bound) && w.backlogged(&s.fleet.conf.limits, &s.moment)
}

// absence returns why a worker that takes no requests is not offered.
func (s *shot) absence(w *Worker) Standing {
	switch {
	case w.health.State() == judge.Starting:
		return Starting
	case s.fleet.lastResort(w):
		return Silent
	}
	return Down
}

// due reports whether a worker that starts slowly has its turn.
func (s *shot) due(w *Worker) bool {
	if s.weight == 0 {
		s.weight = s.fleet.weight()
	}
	return w.slowStart.Due(s.moment.now, w.weight/s.weight, s.fleet.rates.Begun)
}

// fit returns TooShort in place of a standing in which the worker would take the request, in this pass or a later one.
func (s *shot) fit(w *Worker, standing Standing) Standing {
	switch {
	case standing != Ready && standing != Held && standing != Crowded && standing != Panicked:
	case s.Tied && w.id == s.Bound:
	case w.listing.IsShorter(s.Model, s.Need):
		s.short = max(s.short, w.listing.Length(s.Model))
		return TooShort
	}
	return standing
}

// takeShort offers the workers that are too short, if no other worker may take the request.
func (s *shot) takeShort() {
	if s.standing == TooShort {
		s.Need = 0
		s.take()
	}
}

// askOutside has workers added that may serve the request, if none of the pool may. They have the labels of its fence,
// or may list its model, or a longer one.
func (s *shot) askOutside() {
	ask := s.fleet.conf.Outside
	if ask == nil || s.Only != nil || s.From != nil {
		return
	}
	want := Want{Fence: s.Fence, Model: s.Model}
	switch s.standing {
	case Fenced:
		want.Model = ""
	case TooShort:
		want.Longer = s.short
	case Lacking:
	default:
		return
	}
	if ask(want) && (s.standing != TooShort || s.Waits) {
		s.standing = Starting
	}
}

// describe writes the means of all workers, of which so many have a row.
func (s *shot) describe(rows int) {
	var of *order.Set[*Worker]
	if s.cohort != nil {
		of = &s.cohort.order
	}
	of.Describe(s.Means, rows, s.moment.shared())
}

// outside reports whether the request's fence or a filter keeps it from a worker.
func (s *shot) outside(w *Worker) bool {
	return !s.inside.Admit(w.labels) || s.Only != nil && !s.Only.admits(w) || s.From != nil && !s.goesOn(w)
}

// goesOn reports whether a worker can go on with an answer of From, as far as is known.
func (s *shot) goesOn(w *Worker) bool {
	return w.endpoint != s.From.endpoint && (w.listing == nil || s.From.listing == nil ||
		w.listing.Root(s.Model) == s.From.listing.Root(s.Model))
}

// Count is how many workers a request may go to.
type Count struct {
	Configured int // inside of its fence
	Up         int // of them those that answer their health checks

	// Hidden: some workers that may serve the request were not offered while others were. They are in slow start, have
	// refused a request a moment ago, or are suspected.
	Hidden bool

	Next *Worker // whose turn it is, of those that have a row while others are left out; nil = not looked for

	labels *labels.Set // as of the Snapshot
}

// count counts the workers inside of the request's fence. Without one the fleet has both numbers.
func (s *shot) count() Count {
	c := Count{labels: s.fleet.labels}
	if len(s.Fence) == 0 && s.Only == nil && s.From == nil {
		c.Configured, c.Up = len(s.fleet.workers), s.fleet.up
		return c
	}
	for _, w := range s.fleet.workers {
		if s.outside(w) {
			continue
		}
		c.Configured++
		if w.isUp() {
			c.Up++
		}
	}
	return c
}

// lastResort reports whether w gets requests that no other worker takes: it is only suspected, or it is paused, and the
// requests wait there. They wait in the router if the pool has a time for that.
func (f *fleet) lastResort(w *Worker) bool {
	if w.engine.Rest() == judge.Paused {
		return w.isUp() && !w.closed() && !f.conf.Holds
	}
	return w.suspected()
}
