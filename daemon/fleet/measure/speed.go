package measure

import (
	"math"
	"slices"
	"time"
)

const (
	DriftTime = 200 * time.Second // in which Rel drifts to 1; without it one bad sample starves a worker for ever
	relStep   = 0.04
	fleetStep = 0.01
	maxSlow   = 1e3 // bounds of slowness, against a clock that jumps; a CPU worker is 100 times slower than by C1
)

// FleetSlowness is the median slowness over all samples of all workers.
type FleetSlowness struct {
	Value   float64
	Samples int
}

// WorkerSpeed records how slow one worker is relative to the fleet. Its slowness m is the fleet's times the larger of
// Rel and Drag.
type WorkerSpeed struct {
	Rel      float64
	Evidence float64 // samples of Rel, those of long ago counted less
	Drag     float64 // times the fleet's time per output token; 0 = it is usual
	Pace     Pace
}

// Learn takes one sample of slowness from the worker of s. Both values are running medians, which only the sample's
// side moves. So a sample that is off by a factor of 100 does no more harm than one that is off by 1 %.
func (f *FleetSlowness) Learn(s *WorkerSpeed, x float64) {
	m := f.Value * s.Rel
	step := max(fleetStep, .5/(1+float64(f.Samples)/3))
	f.Samples++
	f.Value = Bound(f.Value * math.Exp(step*side(x, f.Value)))
	s.Rel = Bound(s.Rel * math.Exp(relStep*side(x, m)))
	s.Evidence++
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

// Bound clamps a slowness to the range of plausible values.
func Bound(v float64) float64 { return min(maxSlow, max(1/maxSlow, v)) }

// Drift fades what was learnt. keep is e^(-dt/driftTime).
func (s *WorkerSpeed) Drift(keep float64) {
	s.Evidence *= keep
	if s.Rel != 1 {
		s.Rel = math.Pow(s.Rel, keep)
	}
}

// Pace is the speed of a worker by its own metrics. Streams show when their prefill ended, answers in one piece do not:
// without pace a fleet that streams nothing would never learn that one of its workers is slow. Whole answers as samples
// of speed do harm (their length is in them). So the pool takes the worker's own figures in their place, over each
// interval between two scrapes: seconds of prefill by tokens computed, of all its traffic from every sender.
//
// Under load vLLM counts the prefills of one engine step side by side, so the figure is not a speed. But that holds
// for all workers. Therefore they are only compared with each other: compare changes Rel, never the fleet's speed.
type Pace struct {
	Value float64       // prefill seconds per estimated second; 0 = never reported
	At    time.Duration // when it was read
}

const (
	firstWord = 2.0 // log of the factor, 7.4, by which a first pace moves rel at most; the k-th moves it by 1/k of that
	fewPaces  = 2   // workers that must have a pace for a comparison
)

// Compare moves s.rel towards the ratio of its pace to the others', by its evidence so far and n requests more. all
// holds s.
//
// The measure is the pace of a worker whose rel is 1, as the median of the recently read paces gives it. With two
// workers it takes the lower one, since the faster of them does most of the work. The median rel stays as it was, so
// that only streams move the level: the lower of noisy figures would let all rels creep up.
func (s *WorkerSpeed) Compare(all []*WorkerSpeed, n float64) {
	recent := slices.DeleteFunc(all, func(o *WorkerSpeed) bool {
		return o.Pace.Value <= 0 || s.Pace.At-o.Pace.At > DriftTime
	})
	if len(recent) < fewPaces {
		return
	}
	scale, level := lowerMedian(recent, (*WorkerSpeed).scale), lowerMedian(recent, (*WorkerSpeed).relative)
	step, off := max(relStep, firstWord/(1+s.Evidence)), math.Log(s.Pace.Value/scale/s.Rel)
	s.Evidence += n
	s.Rel *= math.Exp(max(-step, min(step, off)))
	back := level / lowerMedian(recent, (*WorkerSpeed).relative)
	for _, o := range recent {
		o.Rel = Bound(o.Rel * back)
	}
}

// scale returns the pace that the worker would have with a rel of 1.
func (s *WorkerSpeed) scale() float64 { return s.Pace.Value / s.Rel }

func (s *WorkerSpeed) relative() float64 { return s.Rel }

func lowerMedian(all []*WorkerSpeed, of func(*WorkerSpeed) float64) float64 {
	values := make([]float64, len(all))
	for i, s := range all {
		values[i] = of(s)
	}
	slices.Sort(values)
	return values[(len(values)-1)/2]
}
