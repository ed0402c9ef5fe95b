package operator

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/warmpath/warmpath/daemon/admin/metrics"
	"github.com/warmpath/warmpath/daemon/admin/readiness"
	"github.com/warmpath/warmpath/daemon/request/limit"
	"github.com/warmpath/warmpath/daemon/transport/certificate"
)

const (
	maxWarnings = 40
	maxReason   = 320 // bytes of a reason; a refused file can have a hundred problems, a strategy a stack
)

// warnings lists what is wrong, the worst first.
func warnings(e *evidence) []Warning {
	e.found = []Warning{}
	e.eachPool(e.dead)
	e.refusedFile()
	e.lostStores()
	e.certificates()
	e.eachPool(e.failing, e.unused, e.setAside, e.astray, e.canaries, e.sickWorkers, e.lostRoles, e.fenced, e.unloaded,
		e.full, e.rests, e.preempting)
	e.keysAtLimit()
	e.losses()
	e.eachPool(e.brokenPrefixes)
	all := e.found
	slices.SortStableFunc(all, func(a, b Warning) int { return cmp.Compare(a.Grade, b.Grade) }) // "bad" before "warn"
	if more := len(all) - maxWarnings; more > 0 {
		all = append(all[:maxWarnings], Warning{Grade: warn, Title: fmt.Sprintf("%d more", more),
			Text: "there are more warnings than are listed", Command: e.commands.status("status")})
	}
	for i := range all {
		all[i].Text = cut(all[i].Text)
	}
	return all
}

// eachPool looks at every pool in each of these ways.
func (e *evidence) eachPool(looks ...func(*PoolOverview)) {
	for _, look := range looks {
		for i := range e.Pools {
			look(&e.Pools[i])
		}
	}
}

// add adds a warning about the pool, which may be nil.
func (e *evidence) add(p *PoolOverview, title, text, command string) *Warning {
	w := Warning{Grade: warn, Title: title, Text: text, Command: command}
	if p != nil {
		w.Pool = p.Name
	}
	e.found = append(e.found, w)
	return &e.found[len(e.found)-1]
}

// cut shortens a text to one line of a bearable length.
func cut(text string) string {
	text, _, _ = strings.Cut(strings.TrimSpace(text), "\n")
	if r := []rune(text); len(r) > maxReason {
		return string(r[:maxReason]) + "..."
	}
	return text
}

func (e *evidence) dead(p *PoolOverview) {
	if p.WhyNot == "" {
		return
	}
	w := e.add(p, "pool "+p.Name+" cannot serve", p.WhyNot, e.commands.check(" --probe"))
	w.Grade = bad
	if who := sick(p.Workers); who != "" {
		w.Text += "; " + who
	}
	if i := slices.IndexFunc(p.Workers, func(s WorkerState) bool { return s.Drained }); i >= 0 {
		w.Command = e.commands.status("undrain " + quoted(p.Workers[i].ID))
	}
	if p.Panics {
		w.Title = "pool " + p.Name + " serves by panic alone"
	}
	if len(p.Workers) == 0 {
		w.Text = p.WhyNot + "; its sources name no worker, and no registration is in force"
	}
}

func (e *evidence) failing(p *PoolOverview) {
	if p.Failing != "" {
		e.add(p, "workers of "+p.Name+" are those of before", "a source of them has no answer now: "+p.Failing,
			e.commands.check(""))
	}
}

// unused warns of workers that no router uses.
func (e *evidence) unused(p *PoolOverview) {
	if s := p.Subset; s != nil && s.Unused > 0 {
		e.add(p, fmt.Sprintf("%d workers of %s are unused", s.Unused, p.Name), fmt.Sprintf("the subsets of %d routers "+
			"do not have them: set subset = %d at least, or start more routers that share the history", len(s.Routers),
			(p.Total+len(s.Routers)-1)/len(s.Routers)), e.commands.check(""))
	}
}

func (e *evidence) refusedFile() {
	switch {
	case e.gone:
		e.add(nil, "file gone", "the configuration in force stays, and a restart would fail: put "+e.Reload.File+" back",
			"ls -l "+quoted(e.Reload.File))
	case !e.Reload.OK:
		why := strings.ReplaceAll(e.Reload.Error, "conf: "+e.Reload.File+":", "line ")
		e.add(nil, "file refused", "the configuration in force stays: "+why, e.commands.check(""))
	}
}

func (e *evidence) lostStores() {
	if e.store.Refuses != "" {
		e.add(nil, "Redis of [cache] refuses a part", "the memory of this router alone has it: "+e.store.Refuses,
			e.commands.check(" --probe"))
	}
	if e.store.Open {
		without := "the memory of this router alone serves sessions"
		if e.unshared {
			without += ", and it gives out an equal part of each key's limits"
		}
		e.add(nil, "Redis of [cache] lost", without+": "+cmp.Or(e.store.Why, "it does not answer"),
			e.commands.check(" --probe"))
	}
	if e.peers.On && !e.peers.Connected && !e.peers.Since.IsZero() {
		e.add(nil, "Redis of [history] lost", "the routers hear nothing of one another: "+
			cmp.Or(e.peers.Err, "no connection"), e.commands.check(" --probe"))
	}
	if e.short > 0 {
		e.add(nil, "disk of the KV cache full", fmt.Sprintf("it has no room for %d MiB of kv_cache.spill_bytes, so the "+
			"oldest values go sooner: enlarge the disk, or lower spill_bytes", max(1, e.short>>20)),
			e.commands.status("cache stat"))
	}
	if e.l2 == nil {
		return
	}
	for _, s := range e.l2.Servers {
		switch {
		case !s.Up:
			e.add(nil, "L2 of the KV cache lost", s.Address+" does not answer: its values are misses",
				e.commands.status("cache stat"))
		case s.Refuses != "":
			e.add(nil, "L2 of the KV cache takes no values", s.Address+" refuses them: "+s.Refuses,
				e.commands.status("cache stat"))
		}
	}
}

func (e *evidence) certificates() {
	for _, c := range e.Certificates {
		command := "openssl x509 -noout -dates -in " + quoted(c.File)
		if c.State != certificate.OK {
			w := e.add(nil, "certificate "+string(c.State), fmt.Sprintf("that of %s, valid from %s to %s: renew it, no "+
				"restart is needed", c.Listener, c.NotBefore.UTC().Format(time.RFC3339), c.NotAfter.UTC().Format(time.RFC3339)),
				command)
			if c.State != certificate.EndsSoon {
				w.Grade = bad // clients refuse it
			}
		}
		if c.Refused != "" {
			e.add(nil, "certificate refused", strings.TrimPrefix(c.Refused, "listen: "), command)
		}
	}
}

// losses are what this process throws away meanwhile.
func (e *evidence) losses() {
	if lost, rising := e.trends.of(spansLost); rising {
		e.add(nil, "spans lost", fmt.Sprintf("%d, as the collector of [tracing] takes none: see that it runs and can be "+
			"reached", lost.grown()), e.commands.check(""))
	}
	if lost, rising := e.trends.of(linesLost); rising {
		e.add(nil, "lines of the access log lost", fmt.Sprintf("%d: free the disk, or correct server.access_log",
			lost.grown()), "df")
	}
}

func (e *evidence) setAside(p *PoolOverview) {
	if p.Quarantine {
		e.add(p, "strategy of "+p.Name+" set aside", failing(p.PoolState.Strategy, p.Strategy.LastError),
			e.commands.status("status"))
	}
	for _, name := range slices.Sorted(maps.Keys(p.Aside)) {
		e.add(p, "canary of "+p.Name+" set aside", failing(name, p.Aside[name]), e.commands.status("status"))
	}
}

func failing(strategy, why string) string {
	if first, _, cut := strings.Cut(why, `\n`); cut { // the host quotes what a module says, as the stack of a panic
		why = first + ` ...")`
	}
	return fmt.Sprintf("%s failed again and again, and the fallback answers: %s", strategy, why)
}

// astray warns of aliases that lead to a model which no worker lists.
func (e *evidence) astray(p *PoolOverview) {
	var listed []string
	for k := range p.Workers {
		listed = append(listed, p.Workers[k].Models...)
	}
	slices.Sort(listed)
	source := map[bool]string{true: "source of [pools.adapters], "}[p.loads]
	for _, alias := range p.astray {
		become := "its clients get an error"
		if alias.Else != "" {
			become = "its clients get answers of " + alias.Else
		}
		e.add(p, "alias "+alias.String()+", which no worker lists", become+"; the workers list "+
			readiness.SomeIDs(slices.Compact(listed))+": correct to of [[models]], "+source+
			"or --served-model-name of the workers",
			e.commands.check(" --probe"))
	}
}

// canaries warns of those that turn requests away, or fail on them, while the pool's own strategy does not.
func (e *evidence) canaries(p *PoolOverview) {
	for _, canary := range p.Canaries {
		name, _, _ := strings.Cut(canary, " (")
		for _, fault := range [...]struct{ of, does, text string }{
			{rejectsOf, "turns requests away", "that the pool's own strategy would have sent to a worker"},
			{failsOf, "fails", "that went by the fallback, while the pool's own strategy does not fail"},
		} {
			_, own := e.trends.of(fault.of + p.Name + " " + p.PoolState.Strategy)
			x, rising := e.trends.of(fault.of + p.Name + " " + name)
			if _, aside := p.Aside[name]; rising && !own && !aside {
				e.add(p, "canary "+name+" of "+p.Name+" "+fault.does, fmt.Sprintf("%d %s; canaries: %s; take it out of the "+
					"file, or see why it does", x.grown(), fault.text, strings.Join(p.Canaries, ", ")), e.why(p.Name, "", name))
			}
		}
	}
}

func (w *WorkerState) prefills() bool { return w.Labels["role"] == "prefill" }

// lostPrefillers returns the prefillers if none of them is up, while the others serve.
func (p *PoolOverview) lostPrefillers() (lost []WorkerState) {
	for _, r := range p.Roles {
		if r.Role == "prefill" && r.Up == 0 && p.WhyNot == "" && p.Up > 0 {
			return slices.DeleteFunc(slices.Clone(p.Workers), func(w WorkerState) bool { return !w.prefills() })
		}
	}
	return nil
}

// lostRoles warns that no prefiller is up, while the others serve.
func (e *evidence) lostRoles(p *PoolOverview) {
	if lost := p.lostPrefillers(); len(lost) > 0 {
		e.add(p, "no prefiller of "+p.Name+" serves", sick(lost)+": long prompts are computed where they are answered, "+
			"which holds up the answers there", e.commands.check(" --probe"))
	}
}

// unloaded warns of adapters that workers have refused to load.
func (e *evidence) unloaded(p *PoolOverview) {
	if all := p.Unloaded; len(all) > 0 {
		e.add(p, "workers of "+p.Name+" refuse adapters", readiness.SomeIDs(all)+
			": their requests get 404, unless another worker has loaded it: see that source of [pools.adapters] has it at "+
			"every worker, and that all run with --enable-lora and VLLM_ALLOW_RUNTIME_LORA_UPDATING=1",
			e.commands.get("/metrics")+" | grep ^warmpath_adapter")
	}
}

// fenced warns of keys whose requests no worker that is up may get.
func (e *evidence) fenced(p *PoolOverview) {
	for _, key := range p.ShutOut {
		if p.WhyNot == "" && p.Rests == "" {
			e.add(p, "no worker for key "+key, "its requests get 503, whatever the other workers do: undrain or restart one of "+
				"its own, or correct workers of [[keys]]", e.commands.status("status")).Grade = bad
		}
	}
}

// rests warns of requests that wait although no worker is up. A queue for room is no warning: status lists it.
func (e *evidence) rests(p *PoolOverview) {
	if p.Queue == nil || p.Rests == "" {
		return
	}
	n := p.Queue.Waiting
	for _, f := range p.Queue.Flows {
		if f.Limit != "" { // keysAtLimit has those
			n -= f.Requests
		}
	}
	if n > 0 {
		text := fmt.Sprintf("%d, %s each at most, and no worker is up: see that what scales the pool starts one", n, p.Rests)
		if slices.ContainsFunc(p.Workers, func(w WorkerState) bool { return w.State == "paused" }) {
			text = fmt.Sprintf("%d, %s each at most, and %s: see that what paused the workers has them go on", n, p.Rests,
				sick(p.Workers))
		}
		if p.Unwoken != "" {
			text += "; wake_url does not take the call: " + p.Unwoken
		}
		e.add(p, "requests of "+p.Name+" wait for a worker", text, e.commands.status("top"))
	}
}

// full warns of a pool that refuses requests though workers are up.
func (e *evidence) full(p *PoolOverview) {
	if x, rising := e.trends.of(shedsOf + p.Name); rising && p.WhyNot == "" && p.Rests == "" {
		w := e.add(p, "pool "+p.Name+" refuses requests", fmt.Sprintf("%d so far, as its workers had max_in_flight "+
			"requests or refused more", x.grown()), e.commands.status("top"))
		w.Grade = bad
		if p.Wanted > p.Up {
			w.Text += fmt.Sprintf("; some %d workers would have had a place for all", p.Wanted)
		}
	}
}

// preempting warns that engines lack KV: each request that one puts back is computed again, with all its context.
func (e *evidence) preempting(p *PoolOverview) {
	if x, rising := e.trends.of(preemptsOf + p.Name); rising {
		e.add(p, "engines of "+p.Name+" lack KV", fmt.Sprintf("they put %d requests back, to be computed again: bound what "+
			"a worker gets (max_in_flight), add workers, or give the engines more memory", x.grown()),
			e.commands.status("status"))
	}
}

// keysAtLimit warns of the keys whose requests are refused for a limit, or wait for it in the router.
func (e *evidence) keysAtLimit() {
	waits := map[string]int{} // by key and limit
	for i := range e.Pools {
		if q := e.Pools[i].Queue; q != nil {
			for _, f := range q.Flows {
				waits[f.Key+" "+f.Limit] += f.Requests
			}
		}
	}
	for i := range e.limits {
		s := &e.limits[i]
		for by, most := range metrics.LimitsOf(s) {
			name := limit.By(by).String()
			refused, rising := e.trends.of(limitOf + name + " " + s.Key)
			n, all := waits[s.Key+" "+name], []string{}
			title := "key " + s.Key + " is at its limit"
			if rising {
				all = append(all, fmt.Sprintf("%d of its requests got 429", refused.grown()))
			}
			if long, is := e.trends.of(longOf + s.Key); is && limit.By(by) == limit.ByTokens {
				all = append(all, fmt.Sprintf("of which %d need more than that by themselves", long.grown()))
				if n == 0 && long.grown() == refused.grown() {
					title = "requests of key " + s.Key + " are longer than its limit"
				}
			}
			if n > 0 {
				all = append(all, fmt.Sprintf("%d wait in the router, whatever room the workers have", n))
			}
			if len(all) > 0 {
				e.add(nil, title, fmt.Sprintf("%s = %.0f: %s; raise it, or see what its clients do",
					name, most, strings.Join(all, ", ")), e.commands.get("/api/v1/keys"))
			}
		}
	}
}

// brokenPrefixes warns of prompts of which the engines compute nearly all anew at each turn.
func (e *evidence) brokenPrefixes(p *PoolOverview) {
	for _, b := range p.Breaks {
		whose, near := "of clients without a key", "near byte"
		if b.Key != "" {
			whose = "of key " + b.Key
		}
		if b.Exact {
			near = "at byte"
		}
		e.add(p, "prompts "+whose+" break early", fmt.Sprintf("the prefix breaks %s %d in %.0f %% of turns, so that all "+
			"behind is computed again: move the date, id or counter there behind what stays", near, b.Byte, 100*b.Share),
			e.why(p.Name, b.Key, ""))
	}
}
