package worker

import (
	"math"
	"slices"
)

const (
	driftTime = 200.0 // seconds in which rel drifts to 1; without it one bad sample starves a worker for ever
	relStep   = 0.04
	fleetStep = 0.01
	maxSlow   = 1e3 // bounds of slowness, against a clock that jumps; a CPU worker is 100 times slower than C1 says
)

// FleetSpeed is what was learnt of the whole fleet's speed, as another process can start with it.
type FleetSpeed struct {
	Seconds float64 // of prefill a token
	Samples int
}

// Speed is what was learnt of one worker's speed beside the fleet's, as another process can start with it.
type Speed struct {
	Rel      float64 // times the fleet's seconds
	Evidence float64 // samples, those of long ago counted less
}

// fleetSpeed is the median slowness over all samples of all workers.
type fleetSpeed struct {
	slowness float64
	samples  int
}

// speed is how slow one worker is beside the fleet. Its slowness m is fleetSpeed.slowness times rel.
type speed struct {
	rel      float64
	evidence float64 // samples of rel, those of long ago counted less
	pace     pace
}

// learn takes one sample of slowness, seen on the worker of s. Both values are running medians, moved by the sample's
// side alone, so that a sample that is off by a factor of 100 does no more harm than one that is off by 1 %.
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

// drift lets what was learnt fade. keep is e^(-dt/driftTime).
func (s *speed) drift(keep float64) {
	s.evidence *= keep
	if s.rel != 1 {
		s.rel = math.Pow(s.rel, keep)
	}
}

// What a worker's own metrics say of its speed. Streams show when their prefill ended, answers in one piece do not: a
// fleet that streams nothing would never learn that one of its workers is slow. Taken as samples of speed whole answers
// do harm (the length of an answer is in them), so the worker's word is taken in their place, over each interval
// between two scrapes: seconds of prefill by tokens computed in it, of all its traffic, whoever sent it.
//
// Under load the prefills of one engine step are counted side by side, so the figure is no speed. But it is so for all,
// so workers are compared with each other alone: compare moves rel, never fleetSpeed.
type pace struct {
	value float64 // prefill seconds per estimated second; 0 = never said
	at    float64 // when it was read
}

const (
	firstWord = 2.0 // log of the factor by which a worker's first pace moves rel at most: 7.4; the k-th by 1/k of that
	fewPaces  = 2   // workers that must have a pace, to be compared
)

// compare moves s.rel towards what its pace is beside the others', by its evidence so far and n requests more. all
// holds s.
//
// The measure is the pace of a worker whose rel is 1, as the median of those that were read of late makes it: the lower
// one, for of two workers the faster does most of the work. The median rel stays what it was, so that the level is left
// to the streams: the lower of noisy figures would let all rels creep up.
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

// scale is the pace that the worker's would be were its rel 1.
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
