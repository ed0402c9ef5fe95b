package measure

import (
	"math"
	"slices"
	"time"
)

const (
	slowTimes  = 3.0         // times the median time per output token from which a worker is slow; load explains less
	LateTimes  = 5.0         // likewise of the first byte, which the network and the length of the prompt move too
	fewSigns   = 8           // values on which a mean must rest
	freshSigns = time.Minute // for which a worker's newest value counts
	QuickWork  = .05         // seconds of prefill up to which a first byte shows the engine, and not its work
)

// Signs are what each answer shows of a worker's speed, whether its prompt was cached or not. Where most prompts are
// cached, hardly one is a sample of speed.
type Signs struct {
	streams Mean          // seconds per output token, of streams that came here: a client that reads slowly lengthens them
	Pages   Mean          // the same by the engine itself
	Quick   Mean          // seconds to the first byte, of requests that had little prefill and nothing before them
	At      time.Duration // when the newest of the three was noted; 0 = never
	Paged   time.Duration // when the newest of pages was
}

// Note adds a value to one of the means.
func (s *Signs) Note(m *Mean, x float64, now time.Duration) {
	m.Add(x)
	s.At = now
}

// A stream counts at most farStream times the mean of those before it, or leastFar: a few clients that read very
// slowly would otherwise make the worker look slow for all.
const (
	farStream = 2.0
	leastFar  = .005 // seconds per output token
)

// NoteStream adds the seconds per output token of a stream.
func (s *Signs) NoteStream(x float64, now time.Duration) {
	if s.streams.N >= fewSigns {
		x = min(x, max(leastFar, farStream*s.streams.Value))
	}
	s.Note(&s.streams, x, now)
}

// PerToken returns the seconds per output token: the engine's own figure, while it reports one.
func (s *Signs) PerToken() Mean {
	if s.Pages.N > 0 && s.Paged >= s.At-freshSigns {
		return s.Pages
	}
	return s.streams
}

func (s *Signs) firstByte() Mean { return s.Quick }

// IsFresh reports whether a value was noted of late.
func (s *Signs) IsFresh(now time.Duration) bool { return s.At > 0 && now-s.At <= freshSigns }

// Usual holds the medians of a pool, with which each of its workers is compared; 0 = fewer than two workers are known.
type Usual struct{ PerToken, FirstByte float64 }

// MediansOf returns the medians over the workers with a recent mean. With an even number of workers it takes the
// lower middle one.
func MediansOf(all []*Signs, now time.Duration) Usual {
	median := func(of func(*Signs) Mean) float64 {
		var values []float64
		for _, s := range all {
			if m := of(s); m.N >= fewSigns && s.IsFresh(now) {
				values = append(values, m.Value)
			}
		}
		if len(values) < 2 {
			return 0
		}
		slices.Sort(values)
		return values[(len(values)-1)/2]
	}
	return Usual{PerToken: median((*Signs).PerToken), FirstByte: median((*Signs).firstByte)}
}

// Times returns a mean divided by the median; 0 = unknown.
func Times(m Mean, median float64) float64 {
	if median <= 0 || m.N < fewSigns {
		return 0
	}
	return m.Value / median
}

// Pull takes one sample of the worker's time per output token, as times the pool's median. It moves drag alone, by a
// step to its side: to the sample if the worker is slow, else to nothing.
func (s *WorkerSpeed) Pull(x float64) {
	step := math.Exp(relStep)
	switch {
	case x < slowTimes:
		s.Drag = DragOf(s.Drag / step)
	case s.Drag > x:
		s.Drag = max(x, s.Drag/step)
	default:
		s.Drag = min(x, max(1, s.Rel, s.Drag)*step, maxSlow)
	}
}

// DragOf returns a drag, 0 for one that slows nothing.
func DragOf(x float64) float64 {
	if x <= 1.01 {
		return 0
	}
	return x
}

// Times returns how much slower the worker is than the fleet, by its prefill or by its output.
func (s *WorkerSpeed) Times() float64 { return max(s.Rel, s.Drag) }
