package worker

import (
	"cmp"
	"context"
	"log/slog"
	"time"
)

// event is a change that is logged and reported to the hooks after the lock is released.
type event struct {
	of     []*Worker // one worker, or all ranks of an endpoint; nil: the pool
	kind   kind
	why    string
	tokens int // registered, resized: the capacity; removed, drained, wentLeaving, fellSilent: requests in flight
	wait   time.Duration
	keeps  bool // reweighed, weighedBack: the KV cache is what it was
	silent bool // emptied: the engine computes nothing now, and tells of it only with the next block that it stores
}

// name returns the id of the event's worker, or that of the endpoint if the event concerns all its ranks.
func (e *event) name() string {
	if len(e.of) == 1 {
		return e.of[0].id
	}
	return e.of[0].name
}

// kind names a change. Its order is that in which one update's events are announced: a slot is dropped before its
// reuse.
type kind uint8

const (
	rejected kind = iota
	removed
	released
	registered
	resized
	drained
	undrained
	raised
	dropped
	ejected
	wentLeaving
	closed
	restarted
	inPanic
	odd
	fellSilent
	refuses
	refusesSome
	acquitted
	balanced
	slept
	paused
	forgotten
	woke
	emptied
	weighed
	reweighed
	weighedBack
	unread
	relisted
	paired
	unpaired
)

// announcer logs events and calls the hooks.
type announcer struct {
	log      *slog.Logger
	caches   Caches
	onChange func()
}

// announce logs the events of one change and calls their hooks.
func (a *announcer) announce(events []event) {
	if len(events) == 0 {
		return
	}
	defer a.onChange()
	for _, e := range events {
		a.write(e)
		for _, w := range e.of {
			switch e.kind {
			case removed, released, dropped:
				a.caches.Down(w.slot)
			case restarted, slept, emptied:
				a.caches.Restarted(w.slot)
				if e.silent || e.kind == slept {
					a.caches.Outdated(w.slot)
				}
			case reweighed, weighedBack:
				if !e.keeps {
					a.caches.Outdated(w.slot)
				}
			case registered, resized:
				a.caches.Resized(w.slot, e.tokens)
			}
		}
	}
}

// plainLines are the log lines of events of which there is no more to say.
var plainLines = map[kind]struct {
	level slog.Level
	text  string
}{
	released:  {slog.LevelInfo, "worker removed"},
	undrained: {slog.LevelInfo, "worker no longer draining"},
	raised:    {slog.LevelInfo, "worker up"},
	closed:    {slog.LevelInfo, "worker answers again"},
	restarted: {slog.LevelWarn, "worker restarted: its cache is empty"},
	acquitted: {slog.LevelInfo, "worker is back: another worker failed the same request in the same way"},
	slept:     {slog.LevelWarn, "worker asleep: its engine has been put to sleep, and gets no requests"},
	paused: {slog.LevelWarn, "worker paused: it holds its requests, and gets new ones only if no other worker can take " +
		"them"},
	woke:    {slog.LevelInfo, "worker awake"},
	emptied: {slog.LevelInfo, "worker's cache is empty: an operator, or a pause, has emptied it"},
	paired:  {slog.LevelInfo, "worker is paired again: a prompt was computed or handed over"},
	balanced: {slog.LevelWarn, "several processes answer at the worker's URL in turn, so that it is a balancer: load, " +
		"cache and start of each are not known; name the processes themselves: workers_dns, [pools.kubernetes], or " +
		"a worker for each"},
}

func (a *announcer) write(e event) {
	switch e.kind {
	case rejected:
		a.log.Error("worker rejected", "why", e.why)
		return
	case inPanic:
		a.log.Error("no worker is up: requests go to workers that are not (panic)")
		return
	}
	l := a.log.With("worker", e.name())
	if line, ok := plainLines[e.kind]; ok {
		l.Log(context.Background(), line.level, line.text)
		return
	}
	switch e.kind {
	case registered:
		l.Info("worker registered", "url", e.of[0].shown, "slot", e.of[0].slot)
	case removed:
		l.Info("worker draining", "why", cmp.Or(e.why, "no longer configured"), "in_flight", e.tokens)
	case drained:
		l.Info("worker draining", "why", "asked to", "in_flight", e.tokens)
	case dropped:
		l.Warn("worker down", "why", e.why)
	case ejected:
		l.Warn("worker ejected", "why", e.why, "for", e.wait)
	case unpaired:
		l.Warn("worker gets no prompts that are computed for, or by, another worker, but for a trial now and then; "+
			"restart it, and compare its connector with the others'", "why", e.why, "for", e.wait)
	case weighed:
		l.Info("worker's weights", "version", e.why)
	case reweighed:
		l.Info("worker has new weights", "versions", e.why, "keeps_cache", e.keeps)
	case weighedBack:
		l.Warn("worker has older weights than before, and serves with them: if they were not meant to go back, repeat the "+
			"update", "versions", e.why, "keeps_cache", e.keeps)
	case unread:
		l.Warn("worker's metrics cannot be read: what its engine does, and how large its cache is, are not known; make its "+
			"metrics_url the page of a vLLM, SGLang or TensorRT-LLM, reachable and shorter than 8 MiB", "why", e.why)
	case relisted:
		l.Warn("worker lists none of the models that it listed before: if it was not meant to serve others, correct what it "+
			"was started with", "models", e.why)
	case fellSilent:
		l.Warn("worker silent: it keeps its requests, and gets new ones only if no other worker can take them", "why", e.why,
			"in_flight", e.tokens)
	case refuses:
		l.Warn("worker set aside: it refuses requests that other workers accept; compare its --api-key, "+
			"--served-model-name and version with theirs", "why", e.why, "for", e.wait)
	case refusesSome:
		l.Warn("worker gets few requests of one kind: it refuses them, and other workers accept them", "why", e.why)
	case wentLeaving:
		l.Warn("worker taken for draining", "why", e.why, "in_flight", e.tokens, "tried_again_in", e.wait)
	case forgotten:
		l.Warn("worker is still paused: what paused it may have ended before it had it go on, and its requests wait",
			"for", e.wait, "run", "curl -X POST "+e.of[0].shown+"/resume")
	case resized:
		l.Info("worker capacity", "tokens", e.tokens)
	case odd:
		l.Warn("the worker's metrics show another number of engines than data_parallel: load and cache of each rank are "+
			"unknown, and a rank that does not exist answers 400: correct data_parallel of the worker, or leave it out",
			"ranks", len(e.of), "engines", e.tokens)
	}
}
