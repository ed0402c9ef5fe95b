package worker

import (
	"math"
	"slices"
)

// What a worker's own metrics tell of its speed. Streams show when their prefill ended, answers in one piece do not: a
// fleet that streams nothing would never learn that one of its workers is slow. Taken as samples of speed whole answers
// do harm (the length of an answer is in them), so the worker's word is taken in their place, over each interval
// between two scrapes: seconds of prefill by tokens computed in it, of all its traffic, whoever sent it.
//
// Under load the prefills of one engine step are counted side by side, so the figure is no speed; but it is so for all,
// and workers are compared with each other alone: told moves rel, never fleet.

const (
	firstTold = 2.0 // log of the factor by which a worker's first figure moves rel at most: 7.4; the k-th moves it by 1/k of that
	fewTold   = 2   // workers that must have told, to be compared
)

// told takes the difference between two pages of one process. The caller holds p.mu.
func (p *Pool) told(w *Worker, was, is Metrics, now float64) {
	if n, s := is.TokenTimes-was.TokenTimes, is.TokenTime-was.TokenTime; n > 0 && s > 0 {
		w.tpot.add(s / n)
	}
	n, seconds, tokens := is.Prefills-was.Prefills, is.Prefill-was.Prefill, freshTokens(&is)-freshTokens(&was)
	if n <= 0 {
		return
	}
	perToken := p.conf().c1
	if w.ended.fresh >= minSample { // long prompts take more a token
		perToken = w.ended.est / float64(w.ended.fresh)
	}
	w.ended = ended{}
	// Below minSample a step's fixed cost is measured. A process' first request often waits for a compiler.
	if seconds <= 0 || tokens < minSample*n || was.Prefills == 0 {
		return
	}
	w.pace, w.paced = seconds/(tokens*perToken), now
	p.compare(w, n)
}

// compare moves w's rel towards what its pace is beside the others', by its evidence so far and n requests more.
//
// The measure is the pace of a worker whose rel is 1, as the median of those that told of late makes it: the lower one,
// for of two workers the faster does most of the work. The median rel stays what it was, so that the level is left to
// the streams: the lower of noisy figures would let all rels creep up.
func (p *Pool) compare(w *Worker, n float64) {
	var told []*Worker
	for _, o := range p.workers {
		if o.pace > 0 && w.paced-o.paced <= driftTime {
			told = append(told, o)
		}
	}
	if len(told) < fewTold {
		return
	}
	scale, level := lowerMedian(told, (*Worker).scale), lowerMedian(told, (*Worker).relative)
	step, off := max(relStep, firstTold/(1+w.heard)), math.Log(w.pace/scale/w.rel)
	w.heard += n
	w.rel *= math.Exp(max(-step, min(step, off)))
	back := level / lowerMedian(told, (*Worker).relative)
	for _, o := range told {
		o.rel = bound(o.rel * back)
	}
}

// scale is the pace that w's would be were its rel 1.
func (w *Worker) scale() float64 { return w.pace / w.rel }

func (w *Worker) relative() float64 { return w.rel }

func lowerMedian(ws []*Worker, of func(*Worker) float64) float64 {
	values := make([]float64, len(ws))
	for i, w := range ws {
		values[i] = of(w)
	}
	slices.Sort(values)
	return values[(len(values)-1)/2]
}

// ended is what the requests were estimated at that have ended since the worker last told of any.
type ended struct {
	est   float64
	fresh int // tokens not believed cached
}

// freshTokens is the prompt tokens of ended requests that were not cached. Before 0.19 vLLM does not say them; then it
// is the prompts' less those found in the cache, of which a few are still running.
func freshTokens(m *Metrics) float64 {
	if m.SaysComputed {
		return m.Computed
	}
	return max(0, m.Prompts-m.Hits-m.ExternalHits)
}
