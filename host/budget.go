package host

import (
	"errors"
	"time"

	"github.com/tetratelabs/wazero/api"
)

// budget is what one call into a module may cost: fuel, and time. The module's fuel global holds a slice of the fuel.
// When that is used up the module calls refill, which looks at the clock and hands out the next slice, or ends the
// call. A pick that is done within its first slice costs no look at the clock.
type budget struct {
	rest  int64         // fuel that has not been handed out
	slice int64         // fuel handed out last
	limit time.Duration // of time
	spent time.Duration // the module's own, up to the last refill
	sure  time.Duration // spent without the slices that took longer than a module can make of them
	since time.Duration // when that slice was handed out, on our clock; 0 = not known
}

const (
	// worst is the most time that a module can make of 1 fuel: the meter's prices are made for it, and TestPrices holds
	// them. Two things follow. A slice is never larger than what remains of the time at this rate, so that a call ends
	// within its limit. And what a slice took beyond twice this rate is not the module's doing but that of a machine that
	// ran something else: it is not counted, or a busy machine would end picks that are in order.
	worst = 800 * time.Nanosecond
	// stepFuel is a slice off the request path: 2 ms at worst.
	stepFuel = 2_500
	// leastTime is the least remaining time for which another slice is handed out.
	leastTime = 200 * time.Microsecond
	// bulkRate is the time that 1 fuel of a bulk operation takes at most: 16 bytes of memory never touched before.
	bulkRate = 8 * time.Nanosecond
	// longShare is the share of a pick's time from which on a pick is long: 1 ms of 5 ms.
	longShare = 5
	// trusted is the number of picks in order after which an instance gets slices for four fifths of what remains of its
	// time, and not for one: that is a quarter of the looks at the clock.
	trusted = 1000
)

// Limits of the calls that are off the request path. A Go guest of 2 MB starts in 4 ms and is configured in one.
const (
	startTime     = 2 * time.Second
	configureTime = 2 * time.Second
	frameTime     = 250 * time.Millisecond
	maintTime     = 250 * time.Millisecond
)

var (
	errNoFuel = errors.New("out of fuel")
	errNoTime = errors.New("out of time")
)

// epoch is when our clock began.
var epoch = time.Now()

func sinceEpoch() time.Duration { return time.Since(epoch) }

func newBudget(fuel, slice int64, limit, since time.Duration) budget {
	slice = min(fuel, slice)
	return budget{rest: fuel - slice, slice: slice, limit: limit, since: since}
}

// startBudget returns the budget of start code. Its first slice stands in the module itself.
func (p *program) startBudget() budget {
	return newBudget(p.fuel*setupFactor, stepFuel, startTime, p.clock())
}

// allowance hands out what the calls into one instance may cost, one call at a time.
type allowance struct {
	program *program
	fuel    api.MutableGlobal // of the slice
	left    budget            // of the call under way
	over    error             // errNoFuel, errNoTime or errNoStack, if refill ended the call
	trust   int               // picks in order, up to trusted
	running *stack            // of the call under way
}

// begin gives the module the first slice of a call.
func (a *allowance) begin(b budget) {
	a.left, a.over = b, nil
	a.fuel.Set(uint64(b.slice))
}

// beginPick gives the module the first slice of a pick.
func (a *allowance) beginPick(limit, since time.Duration) {
	if a.trust < trusted {
		a.trust++
	}
	a.begin(newBudget(a.program.fuel, a.step(limit), limit, since))
}

// step returns the size of the next slice, by the time that remains.
func (a *allowance) step(remains time.Duration) int64 {
	n := int64(remains / 5 / worst)
	if a.trust == trusted {
		return 4 * n
	}
	return max(n, int64(min(remains, leastTime)/worst))
}

// used is the fuel that the call under way has used, of fuel.
func (a *allowance) used(fuel int64) int64 { return fuel - a.left.rest - int64(a.fuel.Get()) }

// refill goes on with the next slice, or ends the call. The fuel global is below zero. The stack is looked at here too:
// within a slice it cannot grow far, as an entry has its price (package meter).
func (a *allowance) refill() {
	b := &a.left
	owed := -int64(a.fuel.Get())
	most := time.Duration(b.slice) * worst
	now := a.program.clock()
	took := now - b.since
	switch {
	case b.since == 0: // the first slice was not timed
		took = 0
	case took > most/4:
		a.trust = 0
	}
	b.spent += min(took, most)
	if took <= most+time.Duration(owed)*bulkRate {
		b.sure += took
	}
	b.since = now
	remains := b.limit - b.spent
	switch {
	case owed > b.rest:
		a.stop(errNoFuel)
	case a.running.size() > a.program.memory/stackShare:
		a.stop(errNoStack)
	case remains < leastTime, time.Duration(owed)*bulkRate > remains:
		a.stop(errNoTime)
	}
	b.rest -= owed
	b.slice = min(b.rest, a.step(remains))
	b.rest -= b.slice
	a.fuel.Set(uint64(b.slice))
}

// long reports whether the pick that has just ended by itself, with fuel used, took longer than a strategy may take
// again and again. It looks at the clock only after as much fuel as can take so long. A slice that took longer than a
// module can make of it is left out: the machine ran something else, and on a busy one the picks in order would set a
// strategy aside.
func (a *allowance) long(fuel int64) bool {
	b, limit := &a.left, a.program.pickTime/longShare
	if time.Duration(fuel)*worst <= limit {
		return false
	}
	spent := b.sure
	if b.since != 0 {
		if last := a.program.clock() - b.since; last <= time.Duration(b.slice)*worst {
			spent += last
		}
	}
	return spent > limit
}

// stop ends the guest's call: a panic in a host function is wazero's way to make an error of it, and goes no further.
func (a *allowance) stop(err error) {
	a.over = err
	panic(err)
}

// pay takes fuel from the guest that called an import. If fuel or time are used up, the call ends here.
func (a *allowance) pay(fuel int64) {
	left := int64(a.fuel.Get()) - fuel
	a.fuel.Set(uint64(left))
	if left < 0 {
		a.refill()
	}
}

// payBytes takes what a copy of n bytes costs, as memory.copy does.
func (a *allowance) payBytes(n uint32) { a.pay(int64(n >> 4)) }
