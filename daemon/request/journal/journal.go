package journal

import (
	"cmp"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/warmpath/warmpath/cache/parts/seldom"
	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/request/epoch"
	"github.com/warmpath/warmpath/daemon/request/message"
	"github.com/warmpath/warmpath/daemon/request/names"
	"github.com/warmpath/warmpath/daemon/request/record"
	"github.com/warmpath/warmpath/daemon/request/route"
	"github.com/warmpath/warmpath/daemon/transport/gate"
)

// Journal logs and counts how requests end. It is safe for concurrent use.
type Journal struct {
	Log    *slog.Logger
	Meter  Meter
	keeper Keeper // nil = none

	Legs *Journal // of requests that are no client's: prefills, and the rests of answers

	matched    seldom.Line   // for Matched
	unpaired   seldom.Line   // for prefilled
	alone      seldom.Spells // for prefilled, by pool, a space and the result
	lost       seldom.Spells // for NobodyLeft and GaveUp, by pool and reason
	starved    seldom.Line   // for noDescriptor
	failedPick seldom.Line   // for failedStrategy
	refusedKey seldom.Line   // for keyRefused
	unkept     seldom.Line   // for keptNothing
	mixedUp    seldom.Line   // for foreign
	heldInVain seldom.Line   // for failedStrategy
	cutClass   seldom.Once   // for CutClass, by pool and key
	apart      seldom.Line   // for fenced
	fallen     seldom.Line   // for fellBack
	moved      seldom.Spells // for Moved, by pool
	broken     seldom.Spells // for BrokeOff, by pool and worker
	goesOn     seldom.Spells // for Continues and Discontinued, by pool and how it ends
	died       seldom.Spells // for SessionLost, by pool

	failedInside seldom.Spells // for FailedInside, by pool and worker
}

// New makes the journal of a server. keeper may be nil.
func New(log *slog.Logger, m Meter, keeper Keeper) *Journal {
	legs := &Journal{Log: log, Meter: legMeter{m}}
	legs.Legs = legs
	return &Journal{Log: log, Meter: m, keeper: keeper, Legs: legs}
}

// Of returns the logger that names the pool, which may be nil.
func (j *Journal) Of(p *epoch.Pool) *slog.Logger {
	if p == nil {
		return j.Log
	}
	return j.Log.With("pool", p.Name)
}

// RefusedSession logs and counts a request that is refused for its session. more are further attributes of the line.
func (j *Journal) RefusedSession(in *message.Inbound, pool, code string, more ...any) {
	j.Meter.SessionRefused(pool, code)
	j.Log.Info("session refused",
		append([]any{"id", in.ID, "pool", pool, "reason", code, "path", gate.Cut(in.Path)}, more...)...)
}

// Decided passes the decision to the keeper. A verdict on the session alone looked at no worker; its code is enough.
func (j *Journal) Decided(in *message.Inbound, c *route.Choice, v route.Verdict) {
	switch v {
	case route.Chosen, route.Rejected, route.NoWorker, route.UnknownModel, route.Fenced, route.Full, route.Held:
		if j.keeper != nil {
			j.keeper.Decided(in, c)
		}
	}
}

// Moved logs that a session goes to another worker: the first, and how many there were. When a worker goes, so do all
// of its sessions.
func (j *Journal) Moved(in *message.Inbound, p *epoch.Pool, from, to, session string) {
	j.moved.InfoUntilQuiet(j.Of(p), p.Name, "session moves to another worker", "for a minute no session has moved",
		"id", in.ID, "from", from, "to", to, "session", session)
}

// SessionLost logs that the state of a session was lost with its worker: the first of a pool, and how many there were.
func (j *Journal) SessionLost(in *message.Inbound, p *epoch.Pool, worker, kind, session string) {
	j.died.WarnUntilQuiet(j.Of(p), p.Name, "session lost with its worker", "for a minute no session has been lost",
		"id", in.ID, "worker", worker, "kind", kind, "session", session)
}

// BrokeOff logs that a worker's answer breaks off: the first of the worker, and how many there were. When a
// worker dies, all of its answers do.
func (j *Journal) BrokeOff(in *message.Inbound, p *epoch.Pool, worker, why string) {
	j.broken.WarnUntilQuiet(j.Of(p).With("worker", worker), p.Name+" "+worker,
		"worker broke off in the middle of an answer", "for a minute no answer of the worker has ended so",
		"id", in.ID, "error", why)
}

// FailedInside is BrokeOff for an answer that reports a failure of its worker.
func (j *Journal) FailedInside(in *message.Inbound, p *epoch.Pool, worker string, code int) {
	j.failedInside.WarnUntilQuiet(j.Of(p).With("worker", worker), p.Name+" "+worker,
		"worker reported a failure in the middle of an answer", "for a minute no answer of the worker has ended so",
		"id", in.ID, "code", code)
}

// Matched logs what the workers' reports of their KV cache had to do with the choice, in the words of SageMaker
// HyperPod's router, for which its operators search the log: matches once a second as INFO. debug: each request.
func (j *Journal) Matched(in *message.Inbound, c *route.Choice, debug bool) {
	read, matched := c.Reported()
	if !read {
		return
	}
	found := "None"
	if matched {
		found = c.First().ID()
		due, log := j.matched.Due(time.Now(), time.Second), j.Log.Debug
		if due {
			log = j.Log.Info
		}
		if due || debug {
			log("Routing request to "+found+" found by "+in.Seen.Strategy+" router", "id", in.ID)
		}
	}
	if debug {
		j.Log.Debug("Matched instance url "+found, "id", in.ID)
	}
}

// Waits passes a request that waits to the keeper.
func (j *Journal) Waits(in *message.Inbound, c *route.Choice, p Position) {
	if j.keeper != nil {
		j.keeper.Waits(in, c, p)
	}
}

// Prefills passes what is known so far of the prefill of a request to the keeper.
func (j *Journal) Prefills(in *message.Inbound, s *record.Split) {
	if j.keeper != nil {
		j.keeper.Prefills(in, *s)
	}
}

// CutClass logs, once for a pool and a key, that a strategy gave a class that the key may not have.
func (j *Journal) CutClass(in *message.Inbound, p *epoch.Pool, class, to int) {
	j.cutClass.Warn(j.Of(p), p.Name+"/"+in.Caller.Name, "the class that a strategy gives is cut by [[keys]] priority; "+
		"widen that, or have the strategy give less", "id", in.ID, "key", in.Caller.Name, "class", class, "cut_to", to)
}

// FailedStrategy logs which request the module failed on, as the host's own line does not know it. A module that
// declines has not failed.
func (j *Journal) FailedStrategy(in *message.Inbound, p *epoch.Pool, c *route.Choice, v route.Verdict) {
	switch in.Seen.Fallback {
	case "decline", "no_rows", "busy", "quarantined", "closed":
		return
	case "hold":
		if p.Queue == nil && j.heldInVain.Due(time.Now(), 24*time.Hour) {
			j.Of(p).Warn("the strategy holds requests, and its pool has no queue, so they do not wait; bound what a "+
				"worker gets (max_in_flight, max_wait_seconds), or have the strategy hold none", "id", in.ID,
				"strategy", in.Seen.Strategy)
		}
		return
	}
	if !j.failedPick.Due(time.Now(), time.Second) { // a module that is broken fails on every request
		return
	}
	log := j.Of(p).With("id", in.ID, "strategy", in.Seen.Strategy, "reason", in.Seen.Fallback, "error", c.LastError())
	if v == route.Rejected {
		log.Warn("the strategy failed on a request, which gets 503 (on_failure)")
	} else {
		log.Warn("the strategy failed on a request; the fallback chose its worker")
	}
}

// Prefilled counts what became of the prefill of a request at a worker of its own, and logs that the worker which
// answers computes the prompt itself, or that memory of a prefiller is lost for a while.
func (j *Journal) Prefilled(in *message.Inbound, p *epoch.Pool, result Prefilled, why string) {
	j.Meter.Prefilled(p.Name, result)
	switch result {
	case PrefillDone:
		j.alone.Over(j.Of(p), p.Name+" ", "prefillers of the pool compute prompts again")
		return
	case PrefillFreed, PrefillLong, PrefillRefused, PrefillDropped: // an invalid request is not news
		return
	}
	meant := why == message.FaultFenced.Code || strings.HasPrefix(why, SetAside) // or another line says it
	now, log := time.Now(), j.Of(p).With("id", in.ID, "result", string(result))
	if why != "" {
		log = log.With("why", why)
	}
	switch {
	case meant && !j.unpaired.Due(now, time.Minute), (result == PrefillLost || result == PrefillPinned) &&
		!j.unpaired.Due(now, time.Second):
		return
	case result == PrefillLost:
		log.Warn("a decoder could not load what a prefiller had computed, and computes it itself: see that the connector" +
			" works and the prefillers do not restart")
		return
	case result == PrefillPinned:
		log.Warn("no decoder has read what a prefiller had computed, and the KV stays in the prefiller's memory until" +
			" that gives it up: see that decoders are up")
		return
	}
	key := p.Name + " " + string(result)
	if !p.Pairing.Connector.Alone() {
		j.alone.Warn(log, key, "a prefill failed, and the decode servers of its pool compute no prompts: see that"+
			" workers with role prefill are up, list its model and have the pool's connector")
		return
	}
	j.alone.Warn(log, key, "no prefiller computed a prompt, and the decoder did it itself: see that workers with"+
		" role prefill are up, list its model and have the pool's connector")
}

// moves passes the worker that a request goes to to the keeper.
func (j *Journal) moves(in *message.Inbound, to *worker.Worker) {
	if j.keeper != nil {
		j.keeper.Moves(in, to.ID())
	}
}

// NoDescriptor logs that this process had no descriptor for a request's connection. It logs once a second at most: a
// line a request could fill the disk.
func (j *Journal) NoDescriptor(in *message.Inbound, p *epoch.Pool) {
	if j.starved.Due(time.Now(), time.Second) {
		j.Of(p).Error("no descriptor is left for a connection to a worker; raise the limit of open files"+
			" (ulimit -n, LimitNOFILE)", "id", in.ID)
	}
}

// KeyRefused logs that a worker refuses the key which this router sends it. It logs once a minute at most.
func (j *Journal) KeyRefused(in *message.Inbound, p *epoch.Pool, w *worker.Worker, status int) {
	if j.refusedKey.Due(time.Now(), time.Minute) {
		j.Of(p).Warn("a worker refuses this router's key: compare worker_key_file of the pool with the worker's --api-key",
			"id", in.ID, "worker", w.ID(), "status", status)
	}
}

// Fenced logs that no worker that answers has the labels of the request's key. It logs once a minute at most.
func (j *Journal) Fenced(in *message.Inbound, p *epoch.Pool) {
	if j.apart.Due(time.Now(), time.Minute) {
		j.Of(p).Warn("no worker of the pool that answers has the labels of a key, whose requests get 503: correct workers of"+
			" [[keys]], or label workers", "id", in.ID, "key", in.Caller.Name, "workers", strings.Join(in.Caller.Workers, ", "))
	}
}

// KeptNothing logs that a body could not be kept in a file.
func (j *Journal) KeptNothing(in *message.Inbound, dir string, err error) {
	if j.unkept.Due(time.Now(), time.Second) {
		j.Log.Error("a long body whose model has not come yet cannot be kept in a file, and its client gets 503; see that"+
			" the folder can be written to and has room (server.overflow_dir)", "id", in.ID,
			"folder", cmp.Or(dir, os.TempDir()), "error", err)
	}
}

// Foreign logs and counts that a worker gave the answer to another request. It logs once a second at most: many
// connections may be out of step at once.
func (j *Journal) Foreign(in *message.Inbound, p *epoch.Pool, w *worker.Worker) {
	j.Meter.Foreign(p.Name, w.ID())
	if j.mixedUp.Due(time.Now(), time.Second) {
		j.Of(p).Warn("a worker gave the answer to another request, which no client gets; its connections are closed;"+
			" look whether it, or a proxy before it, sends answers twice", "id", in.ID, "worker", w.ID())
	}
}

// Step is an attempt that gave the client no answer. The log has it once the next worker is known.
type Step struct {
	Reason Reason
	Worker *worker.Worker
	After  time.Duration // the request's arrival it was given up
}

// PassedOn logs, counts and records that the request goes on to the next worker; from is empty before the first one.
// The next may be the same one again, if it closed an idle connection.
func (j *Journal) PassedOn(in *message.Inbound, p *epoch.Pool, from Step, next *worker.Worker) {
	defer j.moves(in, next)
	if from.Reason == None {
		return
	}
	in.Seen.Retries++
	j.Unanswered(in, from)
	j.Meter.Retried(p.Name, string(from.Reason))
	if from.Reason == NoDescriptor { // that has its own line
		return
	}
	j.Of(p).Info("request goes to the next worker", "id", in.ID, "worker", from.Worker.ID(),
		"reason", string(from.Reason), "next", next.ID())
}

// Unanswered records an attempt that gave the client no answer. Without the last one the log would not show at which
// worker the client waited until it left.
func (j *Journal) Unanswered(in *message.Inbound, s Step) {
	in.Seen.Attempts = append(in.Seen.Attempts, record.Attempt{Worker: s.Worker.ID(), Reason: string(s.Reason),
		After: s.After})
}

// GaveUp logs and records that the request goes to no other worker after that step, though there may be one, so that
// the client gets an error.
func (j *Journal) GaveUp(in *message.Inbound, p *epoch.Pool, last Step, tried int) {
	if last.Reason == None { // the fault is in the request
		return
	}
	j.Unanswered(in, last)
	j.lose(in, p, last, tried, "the request is sent to no other worker: its client gets an error")
}

// lose logs a request whose client gets an error. Each minute without one ends the lines: many may be lost at once.
func (j *Journal) lose(in *message.Inbound, p *epoch.Pool, last Step, tried int, text string) {
	reason := string(last.Reason)
	j.lost.WarnUntilQuiet(j.Of(p).With("reason", reason), p.Name+" "+reason+text, text,
		"for a minute no request has been lost for this reason", "id", in.ID, "worker", last.Worker.ID(), "tried", tried)
}

// Continues records that a worker goes on with a stream that another one broke off, and logs the first of the pool and
// how many there were.
func (j *Journal) Continues(in *message.Inbound, p *epoch.Pool, from Step, next *worker.Worker) {
	j.Unanswered(in, from)
	j.moves(in, next)
	j.goesOn.InfoUntilQuiet(j.Of(p), p.Name, "another worker goes on with a stream",
		"for a minute no stream has gone on at another worker", "id", in.ID, "worker", from.Worker.ID(), "next", next.ID())
}

// Discontinued counts how a stream that a worker broke off has ended, and logs the first of the pool that ended with an
// error, and how many there were.
func (j *Journal) Discontinued(in *message.Inbound, p *epoch.Pool, result Continuation) {
	j.Meter.Continued(p.Name, result)
	if result == ContinuedWhole || result == ContinuedLeft {
		return
	}
	j.goesOn.InfoUntilQuiet(j.Of(p), p.Name+" "+string(result),
		"a stream ends with an error: no other worker goes on with it", "for a minute no stream has ended so",
		"id", in.ID, "why", result)
}

// FellBack logs and counts that the request has gone from a model to another one. It logs once a second at most: all of
// a model's requests may go.
func (j *Journal) FellBack(in *message.Inbound, from string, why names.Reason) {
	j.Meter.FellBack(from, in.Seen.Model, why.String())
	if j.fallen.Due(time.Now(), time.Second) {
		j.Log.Info("request goes to the fallback of its model", "id", in.ID, "model", from, "to", in.Seen.Model,
			"reason", why.String())
	}
}

// NobodyLeft logs and records that the last worker of the attempts has failed too, so that the client gets an error.
func (j *Journal) NobodyLeft(in *message.Inbound, p *epoch.Pool, last Step, tried int) {
	if last.Reason == None {
		return
	}
	j.Unanswered(in, last)
	if last.Reason == NoDescriptor { // that has its own line
		return
	}
	j.lose(in, p, last, tried, "no worker is left for the request: its client gets an error")
}
