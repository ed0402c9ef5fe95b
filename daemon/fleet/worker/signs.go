package worker

import (
	"math"
	"slices"
	"time"
)

const (
	slowTimes  = 3.0         // times the median time per output token from which a worker is slow; load explains less
	lateTimes  = 5.0         // likewise of the first byte, which the network and the length of the prompt move too
	fewSigns   = 8           // values on which a mean must rest
	freshSigns = time.Minute // for which a worker's newest value counts
	quickWork  = .05         // seconds of prefill up to which a first byte shows the engine, and not its work
)

// signs are what each answer shows of a worker's speed, whether its prompt was cached or not. Where most prompts are
// cached, hardly one is a sample of speed.
type signs struct {
	streams mean          // seconds per output token, of streams that came here: a client that reads slowly lengthens them
	pages   mean          // the same by the engine itself
	quick   mean          // seconds to the first byte, of requests that had little prefill and nothing before them
	at      time.Duration // when the newest of the three was noted; 0 = never
	paged   time.Duration // when the newest of pages was
}

// note adds a value to one of the means.
func (s *signs) note(m *mean, x float64, now time.Duration) {
	m.add(x)
	s.at = now
}

// A stream counts up to farStream times the mean of those before it, or leastFar: a few clients that read slowly are as
// slow as nothing else, and would make the worker slow for all.
const (
	farStream = 2.0
	leastFar  = .005 // seconds per output token
)

// noteStream adds the seconds per output token of a stream.
func (s *signs) noteStream(x float64, now time.Duration) {
	if s.streams.n >= fewSigns {
		x = min(x, max(leastFar, farStream*s.streams.value))
	}
	s.note(&s.streams, x, now)
}

// perToken returns the seconds per output token: the engine's own figure, while it reports one.
func (s *signs) perToken() mean {
	if s.pages.n > 0 && s.paged >= s.at-freshSigns {
		return s.pages
	}
	return s.streams
}

func (s *signs) firstByte() mean { return s.quick }

// fresh reports whether a value was noted of late.
func (s *signs) fresh(now time.Duration) bool { return s.at > 0 && now-s.at <= freshSigns }

// usual holds the medians of a pool, with which each of its workers is compared; 0 = fewer than two workers are known.
type usual struct{ perToken, firstByte float64 }

// gauge returns the medians of the workers that have a mean, taken of late. Of two it takes the lower one.
func gauge(all []*signs, now time.Duration) usual {
	median := func(of func(*signs) mean) float64 {
		var values []float64
		for _, s := range all {
			if m := of(s); m.n >= fewSigns && s.fresh(now) {
				values = append(values, m.value)
			}
		}
		if len(values) < 2 {
			return 0
		}
		slices.Sort(values)
		return values[(len(values)-1)/2]
	}
	return usual{perToken: median((*signs).perToken), firstByte: median((*signs).firstByte)}
}

// times returns how often a mean is a median; 0 = it cannot be told.
func times(m mean, median float64) float64 {
	if median <= 0 || m.n < fewSigns {
		return 0
	}
	return m.value / median
}

// pull takes one sample of the worker's time per output token, as times the pool's median. It moves drag alone, by a
// step to its side: to the sample if the worker is slow, else to nothing.
func (s *speed) pull(x float64) {
	step := math.Exp(relStep)
	switch {
	case x < slowTimes:
		s.drag = dragOf(s.drag / step)
	case s.drag > x:
		s.drag = max(x, s.drag/step)
	default:
		s.drag = min(x, max(1, s.rel, s.drag)*step, maxSlow)
	}
}

// dragOf returns a drag, 0 for one that slows nothing.
func dragOf(x float64) float64 {
	if x <= 1.01 {
		return 0
	}
	return x
}

// times returns how much slower the worker is than the fleet, by its prefill or by its output.
func (s *speed) times() float64 { return max(s.rel, s.drag) }
