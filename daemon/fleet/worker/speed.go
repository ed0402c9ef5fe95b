package worker

import (
	"math"
	"slices"
	"time"
)

const (
	driftTime = 200 * time.Second // in which rel drifts to 1; without it one bad sample starves a worker for ever
	relStep   = 0.04
	fleetStep = 0.01
	maxSlow   = 1e3 // bounds of slowness, against a clock that jumps; a CPU worker is 100 times slower than by C1
)

// FleetSpeed is the learnt speed of the whole fleet, in a form from which another process can start.
type FleetSpeed struct {
	Seconds float64 // of prefill a token
	Samples int
}

// Speed is the learnt speed of one worker relative to the fleet's, in a form from which another process can start.
type Speed struct {
	Rel      float64 // times the fleet's seconds
	Evidence float64 // samples, those of long ago counted less
}

// fleetSpeed is the median slowness over all samples of all workers.
type fleetSpeed struct {
	slowness float64
	samples  int
}

// speed records how slow one worker is relative to the fleet. Its slowness m is fleetSpeed.slowness times the
// larger of rel and drag.
type speed struct {
	rel      float64
	evidence float64 // samples of rel, those of long ago counted less
	drag     float64 // times the fleet's time per output token; 0 = it is usual
	pace     pace
}

// learn takes one sample of slowness from the worker of s. Both values are running medians, which only the sample's
// side moves. So a sample that is off by a factor of 100 does no more harm than one that is off by 1 %.
func (f *fleetSpeed) learn(s *speed, x float64) {
	m := f.slowness * s.rel
	step := max(fleetStep, .5/(1+float64(f.samples)/3))
	f.samples++
	f.slowness = bound(f.slowness * math.Exp(step*side(x, f.slowness)))
	s.rel = bound(s.rel * math.Exp(relStep*side(x, m)))
	s.evidence++
}

func side(x, value float64) float64 {
	switch {
	case x > value:
		return 1
	case x < value:
		return -1
	}
	return 0
}

func bound(v float64) float64 { return min(maxSlow, max(1/maxSlow, v)) }

// drift fades what was learnt. keep is e^(-dt/driftTime).
func (s *speed) drift(keep float64) {
	s.evidence *= keep
	if s.rel != 1 {
		s.rel = math.Pow(s.rel, keep)
	}
}

// pace is the speed of a worker by its own metrics. Streams show when their prefill ended, answers in one piece do not:
// without pace a fleet that streams nothing would never learn that one of its workers is slow. Whole answers as samples
// of speed do harm (their length is in them). So the pool takes the worker's own figures in their place, over each
// interval between two scrapes: seconds of prefill by tokens computed, of all its traffic from every sender.
//
// Under load vLLM counts the prefills of one engine step side by side, so the figure is no speed. But that holds for
// all workers. So they are only compared with each other: compare moves rel, never fleetSpeed.
type pace struct {
	value float64       // prefill seconds per estimated second; 0 = never reported
	at    time.Duration // when it was read
}

const (
	firstWord = 2.0 // log of the factor, 7.4, by which a first pace moves rel at most; the k-th moves it by 1/k of that
	fewPaces  = 2   // workers that must have a pace for a comparison
)

// compare moves s.rel towards the ratio of its pace to the others', by its evidence so far and n requests more. all
// holds s.
//
// The measure is the pace of a worker whose rel is 1, as the median of the recently read paces gives it. Of two it
// takes the lower one, since the faster of two workers does most of the work. The median rel stays as it was, so that
// only streams move the level: the lower of noisy figures would let all rels creep up.
func (s *speed) compare(all []*speed, n float64) {
	recent := slices.DeleteFunc(all, func(o *speed) bool { return o.pace.value <= 0 || s.pace.at-o.pace.at > driftTime })
	if len(recent) < fewPaces {
		return
	}
	scale, level := lowerMedian(recent, (*speed).scale), lowerMedian(recent, (*speed).relative)
	step, off := max(relStep, firstWord/(1+s.evidence)), math.Log(s.pace.value/scale/s.rel)
	s.evidence += n
	s.rel *= math.Exp(max(-step, min(step, off)))
	back := level / lowerMedian(recent, (*speed).relative)
	for _, o := range recent {
		o.rel = bound(o.rel * back)
	}
}

// scale returns the pace that the worker would have with a rel of 1.
func (s *speed) scale() float64 { return s.pace.value / s.rel }

func (s *speed) relative() float64 { return s.rel }

func lowerMedian(all []*speed, of func(*speed) float64) float64 {
	values := make([]float64, len(all))
	for i, s := range all {
		values[i] = of(s)
	}
	slices.Sort(values)
	return values[(len(values)-1)/2]
}
