package operator

import (
	"cmp"
	"fmt"
	"net/url"
	"time"

	"github.com/warmpath/warmpath/daemon/admin/readiness"
)

// crashes is how many restarts in [worker.Lately] are a crash loop.
const crashes = 3

// restarting is the word of a crash loop.
const restarting = "keeps restarting"

// ailment is a worker's problem: a short word to print after its name, and the reason.
type ailment struct{ word, why string }

// ail returns what is wrong with a worker that should serve. One that was drained or put to sleep should not.
func (w *WorkerState) ail() (a ailment, ok bool) {
	why := cmp.Or(w.Why, w.LastError)
	switch {
	case w.Lately >= crashes:
		return ailment{word: restarting, why: fmt.Sprintf("%d restarts in 5 min: its own log says why it ends; "+
			"the kernel's, if it was out of memory", w.Lately)}, true
	case w.Drained || w.State == "asleep" || w.State == "paused" || w.State == "starting":
		return ailment{}, false
	case !w.serves():
		return ailment{word: w.State, why: why}, true
	case w.Breaker != "closed":
		return ailment{word: "on trial", why: cmp.Or(why, "its breaker is "+w.Breaker)}, true
	case w.LastError != "" && !w.ErrorOver:
		return ailment{word: "fails", why: w.LastError}, true
	case w.Events != nil && !w.Events.Live && w.Events.State != "replaying":
		return ailment{word: "KV events: " + w.Events.State, why: cmp.Or(w.Events.Why, w.Events.Problem)}, true
	}
	return ailment{}, false
}

// sickWorkers names the workers with an ailment, those of the pool with the same one together. Where the pool cannot
// serve, or no prefiller does, another warning names those that are not up.
func (e *evidence) sickWorkers(p *PoolOverview) {
	e.forgotten(p)
	groups := map[string][]string{}
	first, lost := len(e.found), len(p.lostPrefillers()) > 0
	for k := range p.Workers {
		w := &p.Workers[k]
		a, ok := w.ail()
		if !ok || !w.serves() && (p.WhyNot != "" || lost && w.prefills()) {
			continue
		}
		if groups[a.word] == nil {
			e.add(p, a.word, a.why, e.commands.check(" --probe")).Worker = w.ID
		}
		groups[a.word] = append(groups[a.word], w.ID)
	}
	for k := range e.found[first:] {
		w := &e.found[first+k]
		w.Title, w.Text = e.entitle(p.Name, w.Title, w.Text, groups[w.Title])
	}
}

// forgotten names the workers that have been paused for too long: what paused them has ended before it had them go on.
func (e *evidence) forgotten(p *PoolOverview) {
	var ids []string
	var least time.Duration
	waits := ""
	for i := range p.Workers {
		if w := &p.Workers[i]; w.Forgotten {
			ids = append(ids, w.ID)
			if w.InFlight > 0 {
				waits = "; their requests wait"
			}
			if d := e.Now.Sub(w.Since); least == 0 || d < least {
				least = d
			}
		}
	}
	if len(ids) > 0 {
		e.add(p, fmt.Sprintf("paused for %v: %s", least.Round(time.Second), readiness.SomeIDs(ids)),
			"what paused them may have ended before it had them go on"+waits+": POST /resume to each, as the log says",
			e.commands.order("/api/v1/pools/"+url.PathEscape(p.Name)+"/each?path=/resume"))
	}
}

// severally has the words of ailments for several workers, where they differ.
var severally = map[string]string{"fails": "fail", restarting: "keep restarting"}

// entitle writes a title and a text of the workers with one ailment; why is the first one's reason.
func (e *evidence) entitle(pool, word, why string, ids []string) (title, text string) {
	why = cmp.Or(why, "no reason is known")
	of := ""
	if len(e.Pools) > 1 {
		of = " of " + pool
	}
	if len(ids) == 1 {
		return ids[0] + of + " " + word, why
	}
	return fmt.Sprintf("%d workers%s %s", len(ids), of, cmp.Or(severally[word], word)),
		fmt.Sprintf("%s; %s: %s", readiness.SomeIDs(ids), ids[0], why)
}

// sick names the workers that are not up, and why the first of them is not.
func sick(workers []WorkerState) string {
	var ids []string
	who, why := "", ""
	for i := range workers {
		if w := &workers[i]; !w.serves() {
			ids = append(ids, w.ID+" "+w.State)
			if why == "" {
				who, why = w.ID, cmp.Or(w.Why, w.LastError)
			}
		}
	}
	switch {
	case why == "":
		return readiness.SomeIDs(ids)
	case len(ids) == 1:
		return ids[0] + ": " + why
	}
	return readiness.SomeIDs(ids) + "; " + who + ": " + why
}
