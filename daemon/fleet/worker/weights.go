package worker

import (
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/labels"
)

// Weights is the version of the weights that a worker computes with: one more than its number, 0 = it is not known.
// All ranks of an address have one version.
//
// A version is also the worker's label "weights", so that strategies see it in their rows and fences select by it. It
// comes from a label of the configuration or a registration, from the engine itself (vLLM's /weight_info) and from the
// call that has brought new weights.
type Weights uint64

// weightsLabel is the name of the label.
const weightsLabel = "weights"

// WeightsNamed reads a version as clients and labels write it: a whole number. Any other text is none.
func WeightsNamed(text string) Weights {
	n, err := strconv.ParseUint(text, 10, 63)
	if err != nil {
		return 0
	}
	return Weights(n + 1)
}

// WeightsSaid reads a version in the words of an engine or a trainer: the number at their end, as in step-42. Words
// without one are version 0, as vLLM's "default" before the first update.
func WeightsSaid(words string) Weights {
	digits := words[len(strings.TrimRight(words, "0123456789")):]
	if digits == "" {
		digits = "0"
	}
	return WeightsNamed(digits)
}

// String returns the number, "" if it is not known.
func (v Weights) String() string {
	if v == 0 {
		return ""
	}
	return strconv.FormatUint(uint64(v-1), 10)
}

// Span writes the versions of an answer's beginning and end, as 12 or 12-13.
func (v Weights) Span(end Weights) string {
	if end == v || end == 0 {
		return v.String()
	}
	if v == 0 {
		return end.String()
	}
	return v.String() + "-" + end.String()
}

// Low returns the low half of v, and Of the version near v whose low half that is.
func (v Weights) Low() uint32 { return uint32(v) }

// Of is the reverse of Low.
func (v Weights) Of(low uint32) Weights {
	if low == 0 {
		return 0
	}
	return v>>32<<32 | Weights(low)
}

// Only returns the label, as a Fence has it, of the workers with that version alone.
func (v Weights) Only() string { return weightsLabel + "=" + v.String() }

// AtLeast returns the label, as a Fence has it, of the workers with that version or a later one.
func (v Weights) AtLeast() string { return weightsLabel + labels.AtLeast + v.String() }

// Weights returns the version of the worker's weights as of now.
func (w *Worker) Weights() Weights { return w.version() }

func (e *endpoint) version() Weights { return Weights(e.weights.Load()) }

// Weights is called with each answer of a worker's /weight_info. An engine that says what it said before says nothing
// new: a trainer may have named a version to the router alone.
func (p *Pool) Weights(id uint64, v Weights, now time.Time) {
	p.report(id, func(e *endpoint) {
		was := e.said
		e.said = v
		if v != was && (was != 0 || v > 1 || e.weights.Load() == 0) {
			p.fleet.weigh(e, v, v == e.called, p.fleet.clock(now))
		}
	})
}

// Updating records that a call is sent to the endpoint with that id, after which it has that version: it may say so
// before the call's answer is read.
func (p *Pool) Updating(id string, v Weights) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if e := p.fleet.at(id); e != nil && v != 0 {
		e.called = v
	}
}

// Updated records that a call has given the endpoint with that id new weights, of that version.
func (p *Pool) Updated(id string, v Weights, now time.Time) {
	p.mu.Lock()
	defer p.unlock()
	if e := p.fleet.at(id); e != nil && v != 0 {
		p.fleet.weigh(e, v, true, p.fleet.clock(now))
	}
}

// Lends reports whether KV of one worker is right for another one: both have the same model in the same version, as
// far as is known, and from is up and inside of the fence. It may drain, but neither sleep nor be paused: its KV may be
// gone then, or is not sent.
func (p *Pool) Lends(from, to *Worker, fence Fence, model string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return from != to && from.place == configured && from.isUp() && !from.engine.IsAsleep() &&
		p.fleet.labels.Mask(fence).Admit(from.labels) &&
		from.listing != nil && to.listing != nil && from.listing.Has(model) &&
		from.listing.Root(model) == to.listing.Root(model) && from.Weights() == to.Weights()
}

// HasWeights reports whether a worker inside of the fence has that version and may get requests.
func (p *Pool) HasWeights(v Weights, fence Fence, model string, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	inside, at := p.fleet.labels.Mask(fence), p.fleet.clock(now)
	for _, w := range p.fleet.workers {
		if w.Weights() == v && inside.Admit(w.labels) && w.takes(at) && w.listing.Fits(model) {
			return true
		}
	}
	return false
}

// Keeps reports whether the worker with that id has that version, or none that may serve its own sessions has it.
func (p *Pool) Keeps(id string, v Weights, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	has := false
	for _, w := range p.fleet.workers {
		if w.Weights() == v && w.keeps(p.fleet.clock(now)) {
			if w.id == id {
				return true
			}
			has = true
		}
	}
	return !has
}

// weigh makes v the version of an endpoint. called says that a call of this router's has brought it: the router knows
// then what the calls have done to the KV caches, and new weights alone empty none. Else somebody else has updated the
// worker, and as vLLM's pauses do by default, is taken to have emptied its caches.
func (f *fleet) weigh(e *endpoint, v Weights, called bool, now time.Duration) {
	was := Weights(e.weights.Swap(uint64(v)))
	if v == was {
		return
	}
	e.setLabels(v)
	if was == 0 {
		e.oldest = v
	}
	if len(e.ranks) == 0 { // it is new
		return
	}
	if f.labels.Has(v.Only()) {
		for _, w := range e.ranks {
			w.label(f.labels)
		}
		f.regroup()
	} else {
		f.relabel()
	}
	kind := weighed
	switch {
	case v == 0: // a label was taken away
		return
	case v < was:
		kind = weighedBack
	case was != 0 || called:
		kind = reweighed
	}
	f.noteAll(e.ranks, event{kind: kind, why: was.Span(v), keeps: called}, now)
}

// empty records that the KV cache of w is empty. A worker that rests fills it with the weights that it has when it goes
// on.
func (w *Worker) empty(now time.Duration) {
	w.emptied.Store(int64(now))
	w.oldest = 0
	if !w.engine.IsAsleep() {
		w.oldest = w.version()
	}
}

// unweigh makes the version of an endpoint, whose process has ended, that of its label.
func (f *fleet) unweigh(e *endpoint) {
	e.said, e.oldest = 0, 0
	v := WeightsNamed(e.spec.Labels[weightsLabel])
	if Weights(e.weights.Swap(uint64(v))) != v {
		e.setLabels(v)
		f.relabel()
	}
}

// label gives the worker the bits of its labels.
func (w *Worker) label(set *labels.Set) {
	w.marks.labels, w.marks.set, w.marks.named = set.Bits(w.labelled), set, w.labelled
}

// setLabels writes a version into the endpoint's labels.
func (e *endpoint) setLabels(v Weights) {
	e.labelled = e.spec.Labels
	if v == 0 {
		return
	}
	e.labelled = maps.Clone(e.labelled)
	if e.labelled == nil {
		e.labelled = map[string]string{}
	}
	e.labelled[weightsLabel] = v.String()
}

// relabel gives the labels of all workers their bits anew.
func (f *fleet) relabel() {
	all := make([]map[string]string, len(f.endpoints))
	for i, e := range f.endpoints {
		all[i] = e.labelled
	}
	f.labels = f.labels.After(all)
	for _, w := range f.workers {
		w.label(f.labels)
	}
	f.regroup()
}
