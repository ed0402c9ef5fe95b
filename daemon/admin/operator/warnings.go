package operator

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/warmpath/warmpath/daemon/request/limit"
	"github.com/warmpath/warmpath/daemon/transport/certificate"
)

const (
	maxWarnings = 40
	maxReason   = 240 // bytes of a reason; a refused file can have a hundred problems, a strategy a stack
)

// warnings lists what is wrong, the worst first.
func warnings(e *evidence) []Warning {
	all := slices.Concat(e.deadPools(), e.refusedFile(), e.lostStores(), e.certificates(), e.setAside(),
		e.astray(), e.rejecting(), e.sickWorkers(), e.lostRoles(), e.fullPools(), e.waits(), e.preempting(), e.keysAtLimit(),
		e.losses(), e.brokenPrefixes())
	slices.SortStableFunc(all, func(a, b Warning) int { return cmp.Compare(a.Grade, b.Grade) }) // "bad" before "warn"
	if more := len(all) - maxWarnings; more > 0 {
		all = append(all[:maxWarnings], Warning{Grade: warn, Title: fmt.Sprintf("%d more", more),
			Text: "there are more warnings than are listed", Command: e.commands.status("status")})
	}
	for i := range all {
		all[i].Text = cut(all[i].Text)
	}
	return append([]Warning{}, all...)
}

// cut shortens a text to one line of a bearable length.
func cut(text string) string {
	text, _, _ = strings.Cut(strings.TrimSpace(text), "\n")
	if r := []rune(text); len(r) > maxReason {
		return string(r[:maxReason]) + "..."
	}
	return text
}

func (e *evidence) deadPools() (all []Warning) {
	for i := range e.Pools {
		p := &e.Pools[i]
		if p.WhyNot == "" {
			continue
		}
		w := Warning{Grade: bad, Title: "pool " + p.Name + " cannot serve", Text: p.WhyNot, Pool: p.Name,
			Command: e.commands.check(" --probe")}
		if who := sick(p.Workers); who != "" {
			w.Text += "; " + who
		}
		if p.Panics {
			w.Title = "pool " + p.Name + " serves by panic alone"
		}
		if len(p.Workers) == 0 {
			w.Text = p.WhyNot + "; its sources name no worker"
		}
		all = append(all, w)
	}
	return all
}

func (e *evidence) refusedFile() []Warning {
	if e.gone {
		return []Warning{{Grade: warn, Title: "file gone", Command: "ls -l " + e.Reload.File,
			Text: "the configuration in force stays, and a restart would fail: put " + e.Reload.File + " back"}}
	}
	if e.Reload.OK {
		return nil
	}
	return []Warning{{Grade: warn, Title: "file refused", Command: e.commands.check(""),
		Text: "the configuration in force stays: " + e.Reload.Error}}
}

func (e *evidence) lostStores() (all []Warning) {
	if e.store.Refuses != "" {
		all = append(all, Warning{Grade: warn, Title: "Redis of [cache] refuses a part",
			Command: e.commands.check(" --probe"), Text: "the memory of this router alone has it: " + e.store.Refuses})
	}
	if e.store.Open {
		all = append(all, Warning{Grade: warn, Title: "Redis of [cache] lost", Command: e.commands.check(" --probe"),
			Text: "the memory of this router alone serves sessions: " + cmp.Or(e.store.Why, "it does not answer")})
	}
	if e.peers.On && !e.peers.Connected && !e.peers.Since.IsZero() {
		all = append(all, Warning{Grade: warn, Title: "Redis of [history] lost", Command: e.commands.check(" --probe"),
			Text: "the routers hear nothing of one another: " + cmp.Or(e.peers.Err, "no connection")})
	}
	if e.short > 0 {
		all = append(all, Warning{Grade: warn, Title: "disk of the KV cache full", Command: e.commands.status("cache stat"),
			Text: fmt.Sprintf("it has no room for %d MiB of kv_cache.spill_bytes, so the oldest values go sooner: enlarge the "+
				"disk, or lower spill_bytes", max(1, e.short>>20))})
	}
	if e.l2 == nil {
		return all
	}
	for _, s := range e.l2.Servers {
		switch {
		case !s.Up:
			all = append(all, Warning{Grade: warn, Title: "L2 of the KV cache lost",
				Command: e.commands.status("cache stat"), Text: s.Address + " does not answer: its values are misses"})
		case s.Refuses != "":
			all = append(all, Warning{Grade: warn, Title: "L2 of the KV cache takes no values",
				Command: e.commands.status("cache stat"), Text: s.Address + " refuses them: " + s.Refuses})
		}
	}
	return all
}

func (e *evidence) certificates() (all []Warning) {
	for _, c := range e.Certificates {
		w := Warning{Grade: warn, Title: "certificate " + string(c.State),
			Command: "openssl x509 -noout -dates -in " + c.File,
			Text: fmt.Sprintf("that of %s, valid from %s to %s: renew it, no restart is needed", c.Listener,
				c.NotBefore.UTC().Format(time.RFC3339), c.NotAfter.UTC().Format(time.RFC3339))}
		if c.State != certificate.OK && c.State != certificate.EndsSoon {
			w.Grade = bad // clients refuse it
		}
		if c.State != certificate.OK {
			all = append(all, w)
		}
		if c.Refused != "" {
			all = append(all, Warning{Grade: warn, Title: "certificate refused", Text: strings.TrimPrefix(c.Refused, "listen: "),
				Command: w.Command})
		}
	}
	return all
}

// losses are what this process throws away meanwhile.
func (e *evidence) losses() (all []Warning) {
	if lost, rising := e.trends.of(spansLost); rising {
		all = append(all, Warning{Grade: warn, Title: "spans lost", Command: e.commands.check(""),
			Text: fmt.Sprintf("%d, as the collector of [tracing] takes none: see that it runs and can be reached",
				lost.grown())})
	}
	if lost, rising := e.trends.of(linesLost); rising {
		all = append(all, Warning{Grade: warn, Title: "lines of the access log lost", Command: "df",
			Text: fmt.Sprintf("%d: free the disk, or correct server.access_log", lost.grown())})
	}
	return all
}

func (e *evidence) setAside() (all []Warning) {
	for i := range e.Pools {
		p := &e.Pools[i]
		if p.Quarantine {
			all = append(all, Warning{Grade: warn, Title: "strategy of " + p.Name + " set aside", Pool: p.Name,
				Command: e.commands.status("status"),
				Text:    failing(p.PoolState.Strategy, p.Strategy.LastError)})
		}
		for _, name := range slices.Sorted(maps.Keys(p.Aside)) {
			all = append(all, Warning{Grade: warn, Title: "canary of " + p.Name + " set aside", Pool: p.Name,
				Command: e.commands.status("status"),
				Text:    failing(name, p.Aside[name])})
		}
	}
	return all
}

// astray are aliases that lead to a model which no worker lists.
func (e *evidence) astray() (all []Warning) {
	for i := range e.Pools {
		p := &e.Pools[i]
		var listed []string
		for k := range p.Workers {
			listed = append(listed, p.Workers[k].Models...)
		}
		slices.Sort(listed)
		for _, alias := range p.Astray {
			all = append(all, Warning{Grade: warn, Title: "alias " + alias + ", which no worker lists", Pool: p.Name,
				Command: e.commands.check(" --probe"),
				Text: "its clients get an error, unless it has a fallback; the workers list " +
					someIDs(slices.Compact(listed)) + ": correct to of [[models]], or --served-model-name of the workers"})
		}
	}
	return all
}

// rejecting are canaries that turn requests away which the pool's own strategy would take.
func (e *evidence) rejecting() (all []Warning) {
	for i := range e.Pools {
		p := &e.Pools[i]
		for _, canary := range p.Canaries {
			name, _, _ := strings.Cut(canary, " (")
			_, own := e.trends.of(rejectsOf + p.Name + " " + p.PoolState.Strategy)
			if x, rising := e.trends.of(rejectsOf + p.Name + " " + name); rising && !own {
				all = append(all, Warning{Grade: warn, Title: "canary " + name + " of " + p.Name + " turns requests away",
					Pool: p.Name, Command: e.commands.status("why last"),
					Text: fmt.Sprintf("%d that the pool's own strategy would have sent to a worker; canaries: %s; take it out of "+
						"the file, or see why it does", x.grown(), strings.Join(p.Canaries, ", "))})
			}
		}
	}
	return all
}

// lostRoles are those of which no worker is up, while the others serve.
func (e *evidence) lostRoles() (all []Warning) {
	for i := range e.Pools {
		p := &e.Pools[i]
		for _, r := range p.Roles {
			if r.Role == "prefill" && r.Up == 0 && p.WhyNot == "" && p.Up > 0 {
				all = append(all, Warning{Grade: warn, Title: "no prefiller of " + p.Name + " is up", Pool: p.Name,
					Command: e.commands.check(" --probe"),
					Text: fmt.Sprintf("all %d are down: long prompts are computed where they are answered, which holds up "+
						"the answers there", r.Workers)})
			}
		}
	}
	return all
}

// waits are requests that wait in the router for what more room at the workers would not bring. A queue for room is no
// warning: status lists it.
func (e *evidence) waits() (all []Warning) {
	for i := range e.Pools {
		p := &e.Pools[i]
		if p.Queue == nil {
			continue
		}
		if p.Rests != "" {
			all = append(all, Warning{Grade: warn, Title: "requests of " + p.Name + " wait for a worker", Pool: p.Name,
				Command: e.commands.status("top"),
				Text: fmt.Sprintf("%d, %s each at most, and no worker is up: see that what scales the pool starts one",
					p.Queue.Waiting, p.Rests)})
		}
		for _, f := range p.Queue.Flows {
			if f.Limit != "" {
				all = append(all, Warning{Grade: warn, Title: "key " + f.Key + " waits for its " + f.Limit, Pool: p.Name,
					Command: e.commands.status("top"),
					Text: fmt.Sprintf("%d of its requests wait in the router, whatever room the workers have: raise the limit, or "+
						"see what its clients do", f.Requests)})
			}
		}
	}
	return all
}

func failing(strategy, why string) string {
	if first, _, cut := strings.Cut(why, `\n`); cut { // the host quotes what a module says, as the stack of a panic
		why = first + ` ...")`
	}
	return fmt.Sprintf("%s failed again and again, and the fallback answers: %s", strategy, why)
}

// fullPools are those that refuse requests though workers are up.
func (e *evidence) fullPools() (all []Warning) {
	for i := range e.Pools {
		p := &e.Pools[i]
		if n := e.lacking[p.Name]; n >= 1 && p.WhyNot == "" && p.Rests == "" {
			all = append(all, Warning{Grade: bad, Title: "pool " + p.Name + " refuses requests", Pool: p.Name,
				Command: e.commands.status("top"),
				Text: fmt.Sprintf("some %.0f in the last minute, as its workers had max_in_flight requests or refused more; "+
					"some %d workers would have had a place for all", n, p.Wanted)})
		}
	}
	return all
}

// preempting are pools whose engines lack KV: each request that one puts back is computed again, with all its context.
func (e *evidence) preempting() (all []Warning) {
	for i := range e.Pools {
		p := &e.Pools[i]
		if x, rising := e.trends.of(preemptsOf + p.Name); rising {
			all = append(all, Warning{Grade: warn, Title: "engines of " + p.Name + " lack KV", Pool: p.Name,
				Command: e.commands.status("status"),
				Text: fmt.Sprintf("they put %d requests back, to be computed again: bound what a worker gets (max_in_flight), "+
					"add workers, or give the engines more memory", x.grown())})
		}
	}
	return all
}

// keysAtLimit are the keys of which requests are refused for a limit.
func (e *evidence) keysAtLimit() (all []Warning) {
	for i := range e.limits {
		s := &e.limits[i]
		for by, most := range limitsOf(s) {
			name := limit.By(by).String()
			refused, rising := e.trends.of(limitOf + name + " " + s.Key)
			if !rising {
				continue
			}
			all = append(all, Warning{Grade: warn, Title: "key " + s.Key + " is at its limit",
				Command: "curl -s http://" + e.commands.address + "/api/v1/keys",
				Text: fmt.Sprintf("%d of its requests got 429 for %s = %.0f: raise it, or see what its clients do",
					refused.grown(), name, most)})
		}
	}
	return all
}

// brokenPrefixes are prompts of which the engines compute nearly all anew at each turn.
func (e *evidence) brokenPrefixes() (all []Warning) {
	for i := range e.Pools {
		p := &e.Pools[i]
		for _, b := range p.Breaks {
			whose := "of clients without a key"
			if b.Key != "" {
				whose = "of key " + b.Key
			}
			near := "near byte"
			if b.Exact {
				near = "at byte"
			}
			all = append(all, Warning{Grade: warn, Title: "prompts " + whose + " break early", Pool: p.Name,
				Command: e.commands.status("why last"),
				Text: fmt.Sprintf("the prefix breaks %s %d in %.0f %% of turns, so that all behind is computed again: move the "+
					"date, id or counter there behind what stays", near, b.Byte, 100*b.Share)})
		}
	}
	return all
}
