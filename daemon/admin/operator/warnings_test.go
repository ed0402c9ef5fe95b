package operator

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/cache/kvstore/remote"
	"github.com/warmpath/warmpath/cache/tier"
	"github.com/warmpath/warmpath/daemon/admin/decisions"
	"github.com/warmpath/warmpath/daemon/admin/metrics"
	"github.com/warmpath/warmpath/daemon/admin/readiness"
	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/peers"
	"github.com/warmpath/warmpath/daemon/request/limit"
	"github.com/warmpath/warmpath/daemon/request/message"
	"github.com/warmpath/warmpath/daemon/request/queue"
	"github.com/warmpath/warmpath/daemon/request/record"
	"github.com/warmpath/warmpath/daemon/request/route"
	"github.com/warmpath/warmpath/daemon/request/waiting"
	"github.com/warmpath/warmpath/daemon/transport/certificate"
)

// healthy is evidence of a pool "p" whose workers are up.
func healthy(ids ...string) *evidence {
	o := &Overview{Reload: metrics.Reload{OK: true}, Pools: []PoolOverview{{PoolState: PoolState{Name: "p"}}}}
	for _, id := range ids {
		o.Pools[0].Workers = append(o.Pools[0].Workers, WorkerState{ID: id, State: "up", Breaker: "closed"})
	}
	return &evidence{Overview: o, trends: &trends{}, ring: new(decisions.Ring),
		commands: commands{binary: "warmpath", file: "w.toml", admin: " --admin host:1", curl: "http://host:1"}}
}

// holdWarnings spoils a pool of three and compares the warnings, a line each.
func holdWarnings(t *testing.T, want string, spoil func(e *evidence, p *PoolOverview)) {
	t.Helper()
	e := healthy("a", "b", "c")
	spoil(e, &e.Pools[0])
	var got []string
	for _, w := range warnings(e) {
		got = append(got, fmt.Sprintf("%s: %s | %s | %s", w.Grade, w.Title, w.Text, w.Command))
	}
	if s := strings.Join(got, "\n"); s != want {
		t.Errorf("got\n%s\nwant\n%s", s, want)
	}
}

// Each thing that is wrong is one warning, with a title, a reason and a command.
func TestWarnings(t *testing.T) {
	f := func(want string, spoil func(e *evidence, p *PoolOverview)) {
		t.Helper()
		holdWarnings(t, want, spoil)
	}
	const check, probe, status = "warmpath check --config w.toml", "warmpath check --probe --config w.toml", "warmpath status --admin host:1"
	f("", func(*evidence, *PoolOverview) {})
	f("warn: paused for 18m0s: b | what paused them may have ended before it had them go on; their requests wait: POST /resume "+
		"to each, as the log says | curl -X POST -gs -H \"Authorization: x\" http://host:1/api/v1/pools/p/each?path=/resume", func(e *evidence, p *PoolOverview) {
		e.commands.curl = "-H \"Authorization: x\" " + e.commands.curl
		e.Now = time.Unix(2000, 0)
		for i := range p.Workers[:2] {
			p.Workers[i].InFlight = i
			p.Workers[i].State, p.Workers[i].Since = "paused", e.Now.Add(-time.Duration(i+1)*9*time.Minute)
			p.Workers[i].Forgotten = i == 1
		}
	})
	f("bad: pool p cannot serve | no worker is up; a down, b down, c down; a: connection refused | "+probe, func(_ *evidence, p *PoolOverview) {
		p.WhyNot = readiness.WhyEmpty
		for i := range p.Workers {
			p.Workers[i].State, p.Workers[i].LastError = "down", "connection refused"
		}
	})
	f("bad: pool p cannot serve | no worker is up; b draining: asked to drain | warmpath undrain b --admin host:1", func(_ *evidence, p *PoolOverview) {
		p.WhyNot, p.Workers = readiness.WhyEmpty, p.Workers[1:2]
		p.Workers[0].State, p.Workers[0].Drained, p.Workers[0].Why = "draining", true, "asked to drain"
	})
	f("bad: pool p serves by panic alone | "+readiness.WhyPanics+"; a silent | "+probe, func(_ *evidence, p *PoolOverview) {
		p.WhyNot, p.Panics, p.Workers = readiness.WhyPanics, true, p.Workers[:1]
		p.Workers[0].State = "silent"
	})
	f("bad: pool p cannot serve | no worker is up; its sources name no worker, and no registration is in force | "+probe, func(_ *evidence, p *PoolOverview) {
		p.WhyNot, p.Workers = readiness.WhyEmpty, nil
	})
	f("bad: pool p cannot serve | "+readiness.WhyUnfit+" | "+probe, func(_ *evidence, p *PoolOverview) { p.WhyNot = readiness.WhyUnfit })
	f("warn: file refused | the configuration in force stays: w.toml:3: no | "+check, func(e *evidence, _ *PoolOverview) {
		e.Reload = metrics.Reload{Error: "w.toml:3: no\nw.toml:4: nor this"}
	})
	f("warn: file gone | the configuration in force stays, and a restart would fail: put w.toml back | ls -l w.toml", func(e *evidence, _ *PoolOverview) {
		e.gone, e.Reload.File = true, "w.toml"
	})
	const alone = "warn: Redis of [cache] lost | the memory of this router alone serves sessions: "
	f(alone+"it does not answer | "+probe, func(e *evidence, _ *PoolOverview) { e.store = tier.L2Stats{Open: true} })
	f(alone+"WRONGPASS; correct it | "+probe, func(e *evidence, _ *PoolOverview) {
		e.store = tier.L2Stats{Open: true, Why: "WRONGPASS; correct it"}
	})
	f("warn: Redis of [history] lost | the routers hear nothing of one another: EOF | "+probe, func(e *evidence, _ *PoolOverview) {
		e.peers = peers.Stats{On: true, Since: time.Now(), Err: "EOF"}
	})
	f("", func(e *evidence, _ *PoolOverview) { e.peers = peers.Stats{On: true} }) // it has only begun to connect
	f("warn: L2 of the KV cache lost | r:1 does not answer: its values are misses | warmpath cache stat --admin host:1\n"+
		"warn: L2 of the KV cache takes no values | r:2 refuses them: oom | warmpath cache stat --admin host:1", func(e *evidence, _ *PoolOverview) {
		e.l2 = &remote.Stats{Servers: []remote.ServerStats{{Address: "r:1"}, {Address: "r:2", Up: true, Refuses: "oom"}, {Address: "r:3", Up: true}}}
	})
	f("warn: strategy of p set aside | mine failed again and again, and the fallback answers: (it says \"panic ...\") | "+status+"\n"+
		"warn: canary of p set aside | other failed again and again, and the fallback answers: trap | "+status, func(_ *evidence, p *PoolOverview) {
		p.Quarantine, p.PoolState.Strategy, p.Strategy.LastError = true, "mine", `(it says "panic\n\tstack")`
		p.Aside = map[string]string{"other": "trap"}
	})
	from, to := time.Unix(0, 0), time.Unix(1e9, 0)
	cert := certificate.Stats{Listener: "server", File: "a.pem", NotBefore: from, NotAfter: to, State: certificate.OK}
	const dates, span = "openssl x509 -noout -dates -in a.pem",
		"that of server, valid from 1970-01-01T00:00:00Z to 2001-09-09T01:46:40Z: renew it, no restart is needed"
	f("bad: certificate expired | "+span+" | "+dates+"\nwarn: certificate refused | no pair | "+dates, func(e *evidence, _ *PoolOverview) {
		cert.State, cert.Refused = "expired", "listen: no pair"
		e.Certificates = []certificate.Stats{cert}
	})
	f("warn: certificate ends soon | "+span+" | "+dates, func(e *evidence, _ *PoolOverview) {
		cert.State, cert.Refused = certificate.EndsSoon, ""
		e.Certificates = []certificate.Stats{cert}
	})
	f("warn: spans lost | 7, as the collector of [tracing] takes none: see that it runs and can be reached | "+check+
		"\nwarn: lines of the access log lost | 7: free the disk, or correct server.access_log | df", func(e *evidence, _ *PoolOverview) {
		e.rise(spansLost)
		e.rise(linesLost)
	})
	f("bad: pool p refuses requests | 7 so far, as its workers had max_in_flight requests or refused more; "+
		"some 5 workers would have had a place for all | warmpath top --admin host:1",
		func(e *evidence, p *PoolOverview) {
			e.rise(shedsOf + "p")
			p.Wanted = 5
		})
	f("warn: Redis of [cache] lost | the memory of this router alone serves sessions, and it gives out an equal part of each key's "+
		"limits: it does not answer | "+probe, func(e *evidence, _ *PoolOverview) {
		e.store, e.unshared = tier.L2Stats{Open: true}, true
	})
	f("warn: file refused | the configuration in force stays: line 3: no | "+check, func(e *evidence, _ *PoolOverview) {
		e.Reload = metrics.Reload{File: os.Args[0], Error: "conf: " + os.Args[0] + ":3: no"}
	})
	f("warn: no prefiller of p serves | b down: refused: long prompts are computed where they are "+
		"answered, which holds up the answers there | "+probe, func(_ *evidence, p *PoolOverview) {
		p.Workers[1].State, p.Workers[1].Why, p.Workers[1].Labels = "down", "refused", map[string]string{"role": "prefill"}
		p.Up, p.Roles = 2, []metrics.RoleLoad{{Role: "prefill", Workers: 1}}
	})
	f("bad: no worker for key team-a: b draining | its requests get 503, whatever the other workers do: undrain or restart one of "+
		"its own, or correct workers of [[keys]] | "+status, func(_ *evidence, p *PoolOverview) {
		p.ShutOut = []string{"team-a: b draining"}
	})
	f("warn: workers of p refuse adapters | sql by a: their requests get 404, unless another worker has loaded it: see that source of "+
		"[pools.adapters] has it at every worker, and that all run with --enable-lora and VLLM_ALLOW_RUNTIME_LORA_UPDATING=1 | "+
		"curl -gs http://host:1/metrics | grep ^warmpath_adapter", func(_ *evidence, p *PoolOverview) { p.Unloaded = []string{"sql by a"} })
}

// Requests that wait for a limit of their key are none that wait for a worker.
func TestWarningsAtZero(t *testing.T) {
	const text = "warn: requests of p wait for a worker | 2, 1m0s each at most, and no worker is up: see that what scales the pool starts one"
	for why, more := range map[string]string{"": "", "refused": "; wake_url does not take the call: refused"} {
		holdWarnings(t, text+more+" | warmpath top --admin host:1", func(_ *evidence, p *PoolOverview) {
			p.Rests, p.Unwoken = "1m0s", why
			p.Queue = &waiting.State{Waiting: 6, Flows: []queue.FlowCount{{Limit: "requests_per_minute", Requests: 4}, {Requests: 2}}}
		})
	}
	holdWarnings(t, "", func(_ *evidence, p *PoolOverview) {
		p.Rests, p.Queue = "1m0s", &waiting.State{Waiting: 4, Flows: []queue.FlowCount{{Limit: "requests_per_minute", Requests: 4}}}
	})
}

// A key is shut out while none of the workers with its labels is up, and not where a pool has none for it.
func TestShutOut(t *testing.T) {
	p := &readiness.Pool{Fences: map[string]worker.Fence{"a": {"for=a"}, "b": {"for=b", "tier=gold"}, "c": {"for=c"}}}
	got := p.ShutOut([]worker.Stats{
		{ID: "w1", State: worker.Draining, Labels: map[string]string{"for": "a"}},
		{ID: "w2", Up: true, Labels: map[string]string{"for": "b", "tier": "gold"}},
		{ID: "w3", State: worker.Down, Labels: map[string]string{"for": "b", "tier": "tin"}},
	})
	if len(got) != 1 || got[0] != "a: w1 draining" {
		t.Errorf("%q; want a alone", got)
	}
}

// rise has a count rise by seven.
func (e *evidence) rise(name string) {
	e.trends.see(name, 0, time.Now())
	e.trends.see(name, 7, time.Now())
}

// A key whose requests wait for its limit, and are refused for it, has one problem.
func TestWarningsOfKeys(t *testing.T) {
	f := func(want string, spoil func(e *evidence, q *waiting.State)) {
		t.Helper()
		holdWarnings(t, want, func(e *evidence, p *PoolOverview) {
			p.Queue = &waiting.State{}
			e.limits = []limit.Stats{{Key: "team-a", Limits: limit.Limits{Requests: 30}}}
			spoil(e, p.Queue)
		})
	}
	const at, end = "warn: key team-a is at its limit | requests_per_minute = 30: ",
		"; raise it, or see what its clients do | curl -gs http://host:1/api/v1/keys"
	refused := func(e *evidence, _ *waiting.State) { e.rise(limitOf + "requests_per_minute team-a") }
	waits := func(_ *evidence, q *waiting.State) {
		for _, agent := range []string{"team-a / x", "team-a / y"} {
			q.Flows = append(q.Flows, queue.FlowCount{Flow: agent, Key: "team-a", Limit: "requests_per_minute", Requests: 4})
		}
		q.Flows = append(q.Flows, queue.FlowCount{Flow: "team-a", Key: "team-a", Requests: 2}) // for room
	}
	f("", func(*evidence, *waiting.State) {})
	f(at+"7 of its requests got 429"+end, refused)
	f("warn: requests of key team-b are longer than its limit | tokens_per_minute = 900: 7 of its requests got 429, of which 7 need more "+
		"than that by themselves"+end, func(e *evidence, _ *waiting.State) {
		e.limits[0] = limit.Stats{Key: "team-b", Limits: limit.Limits{Tokens: 900}}
		e.rise(limitOf + "tokens_per_minute team-b")
		e.rise(longOf + "team-b")
	})
	f(at+"8 wait in the router, whatever room the workers have"+end, waits)
	f(at+"7 of its requests got 429, 8 wait in the router, whatever room the workers have"+end, func(e *evidence, q *waiting.State) {
		refused(e, q)
		waits(e, q)
	})
}

// A canary is named where it fails or turns requests away, and the pool's own strategy does not.
func TestWarningsOfCanaries(t *testing.T) {
	f := func(want string, rising ...string) {
		t.Helper()
		holdWarnings(t, want, func(e *evidence, p *PoolOverview) {
			p.PoolState.Strategy, p.Canaries = "own", []string{"mine (20 %)", "other (5 %)"}
			p.Aside = map[string]string{}
			if len(rising) > 2 {
				p.Aside["mine"] = "trap"
			}
			for _, name := range rising {
				e.rise(name)
			}
		})
	}
	const end = "; canaries: mine (20 %), other (5 %); take it out of the file, or see why it does | warmpath why last --admin host:1"
	f("")
	f("warn: canary mine of p turns requests away | 7 that the pool's own strategy would have sent to a worker"+end, rejectsOf+"p mine")
	f("warn: canary mine of p fails | 7 that went by the fallback, while the pool's own strategy does not fail"+end, failsOf+"p mine")
	f("", failsOf+"p mine", failsOf+"p own")
	f("warn: canary of p set aside | mine failed again and again, and the fallback answers: trap | warmpath status --admin host:1",
		failsOf+"p mine", "spare", "spare")
}

func TestWarningsOfPreemptions(t *testing.T) {
	holdWarnings(t, "warn: engines of p lack KV | they put 7 requests back, to be computed again: bound what a worker gets (max_in_flight), "+
		"add workers, or give the engines more memory | warmpath status --admin host:1", func(e *evidence, _ *PoolOverview) {
		e.rise(preemptsOf + "p")
	})
}

func TestWarningsOfTheDisk(t *testing.T) {
	holdWarnings(t, "warn: disk of the KV cache full | it has no room for 512 MiB of kv_cache.spill_bytes, so the oldest values go "+
		"sooner: enlarge the disk, or lower spill_bytes | warmpath cache stat --admin host:1",
		func(e *evidence, _ *PoolOverview) { e.short = 512 << 20 })
}

// A prefix that breaks early costs its key the caches of all that is behind.
func TestWarningsOfPrompts(t *testing.T) {
	holdWarnings(t, "warn: prompts of key team-a break early | the prefix breaks at byte 312 in 94 % of turns, so that all behind is computed again: move the "+
		"date, id or counter there behind what stays | warmpath why last --admin host:1\n"+
		"warn: prompts of clients without a key break early | the prefix breaks near byte 128 in 60 % of turns, so that all behind is computed again: move the "+
		"date, id or counter there behind what stays | warmpath why last --admin host:1", func(_ *evidence, p *PoolOverview) {
		p.Breaks = []route.Break{{Key: "team-a", Byte: 312, Exact: true, Share: .94}, {Byte: 128, Share: .6}}
	})
}

// Workers with one ailment are one warning. What an operator did himself is none.
func TestWarningsOfWorkers(t *testing.T) {
	const check, probe = "warmpath check --config w.toml", "warmpath check --probe --config w.toml"
	f := func(want string, spoil func(e *evidence, p *PoolOverview)) {
		t.Helper()
		holdWarnings(t, want, spoil)
	}
	f("warn: b down | no answer within 2s | "+probe, func(_ *evidence, p *PoolOverview) {
		p.Workers[1].State, p.Workers[1].LastError = "down", "no answer within 2s"
	})
	f("warn: 2 workers fail | a, b; a: EOF | "+probe, func(_ *evidence, p *PoolOverview) {
		p.Workers[0].LastError, p.Workers[1].LastError = "EOF", "timeout"
	})
	f("warn: 2 workers ejected | a, c; a: 401 | "+probe, func(_ *evidence, p *PoolOverview) {
		p.Workers[0].State, p.Workers[0].Why = "ejected", "401"
		p.Workers[2].State, p.Workers[2].Why = "ejected", "403"
	})
	f("warn: a fails | /v1/models answers 401 | "+probe+"\nwarn: b on trial | its breaker is half-open | "+probe+
		"\nwarn: c KV events: gap | no reason is known | "+probe, func(_ *evidence, p *PoolOverview) {
		p.Workers[0].LastError = "/v1/models answers 401"
		p.Workers[1].Breaker = "half-open"
		p.Workers[2].Events = &EventsState{State: "gap"}
	})
	f("warn: b of p down | no reason is known | "+probe+"\nwarn: b of q down | no reason is known | "+probe, func(e *evidence, p *PoolOverview) {
		p.Workers[1].State = "down"
		e.Pools = append(e.Pools, PoolOverview{PoolState: PoolState{Name: "q", Workers: p.Workers}})
	})
	f("", func(_ *evidence, p *PoolOverview) { // what an operator did himself, what is over, and what has only begun
		p.Workers[0].State, p.Workers[0].Drained, p.Workers[0].Why = "draining", true, "asked to drain"
		p.Workers[1].LastError, p.Workers[1].ErrorOver = "EOF", true
		p.Workers[2].State = "starting"
	})
	f("", func(_ *evidence, p *PoolOverview) { p.Workers[0].State = "full" })
	f("", func(_ *evidence, p *PoolOverview) {
		p.Workers[0].State = "asleep"
	})
	f("bad: pool p cannot serve | "+readiness.WhyEmpty+"; a down: x | "+probe+"\nwarn: file refused | the configuration in force stays: no | "+check,
		func(e *evidence, p *PoolOverview) { // the worst first
			e.Reload = metrics.Reload{Error: "no"}
			p.WhyNot, p.Workers = readiness.WhyEmpty, p.Workers[:1]
			p.Workers[0].State, p.Workers[0].LastError = "down", "x"
		})
}

// However much is wrong, the list is bounded, and so is each text.
func TestWarningsAreBounded(t *testing.T) {
	e := healthy()
	for i := range 200 {
		p := PoolOverview{PoolState: PoolState{Name: fmt.Sprint("pool", i), WhyNot: readiness.WhyEmpty}}
		for k := range 300 {
			p.Workers = append(p.Workers, WorkerState{ID: fmt.Sprint("w", k), State: "down", Why: strings.Repeat("x", 1000)})
		}
		e.Pools = append(e.Pools, p)
	}
	all := warnings(e)
	if len(all) != maxWarnings+1 || all[maxWarnings].Title != "160 more" {
		t.Errorf("%d warnings, the last %+v", len(all), all[len(all)-1])
	}
	for _, w := range all {
		if len(w.Text) > maxReason+3 {
			t.Errorf("%d bytes: %s", len(w.Text), w.Text)
		}
	}
	if !strings.Contains(all[0].Text, "w4 down and 295 more") {
		t.Error(all[0].Text)
	}
}

// A command can be pasted into a shell in any folder: it names the binary, the file, the listener where that is not the
// default, and the token's file.
func TestCommands(t *testing.T) {
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	f := func(binary, file, addr, token, check, status, curl string) {
		t.Helper()
		c := newCommands(binary, file, addr, token)
		for _, x := range [][2]string{{c.check(""), check}, {c.status("status"), status}, {c.get("/keys"), curl}} {
			if x[0] != x[1] {
				t.Errorf("%s, %q: %s; want %s", addr, token, x[0], x[1])
			}
		}
	}
	f("warmpath", "/etc/w.toml", "127.0.0.1:9090", "", "warmpath check --config /etc/w.toml", "warmpath status", "curl -gs http://127.0.0.1:9090/keys")
	f("/opt/my bin/warmpath", "it's.toml", "0.0.0.0:9091", "", "'/opt/my bin/warmpath' check --config '"+here+"/it'\\''s.toml'",
		"'/opt/my bin/warmpath' status --admin 127.0.0.1:9091", "curl -gs http://127.0.0.1:9091/keys")
	f("w", "/w.toml", "[::]:9090", "token", "w check --config /w.toml", "w status --token-file "+here+"/token",
		`curl -gs -H "Authorization: Bearer $(cat `+here+`/token)" http://127.0.0.1:9090/keys`)
	f("w", "/w.toml", "[fd00::1]:9090", "", "w check --config /w.toml", "w status --admin '[fd00::1]:9090'", "curl -gs 'http://[fd00::1]:9090'/keys")
	f("w", "/w.toml", "10.0.0.1:9090", "", "w check --config /w.toml", "w status --admin 10.0.0.1:9090", "curl -gs http://10.0.0.1:9090/keys")
}

// The request that a command explains is one of those that the warning is about.
func TestWhyOfAWarning(t *testing.T) {
	e := healthy("a")
	e.ring.Resize(1 << 20)
	for _, s := range []message.Seen{
		{Record: record.Record{Pool: "p", Strategy: "mine", Fallback: "trap"}},
		{Record: record.Record{Pool: "p", Strategy: "other"}, End: message.FaultRejected.Code},
		{Record: record.Record{Pool: "p", Strategy: "mine"}},
		{Record: record.Record{Pool: "q", Strategy: "mine", Fallback: "trap"}},
	} {
		in := &message.Inbound{Seen: s}
		in.ID = fmt.Sprintf("%s-%s-%s%s", s.Pool, s.Strategy, s.Fallback, s.End)
		e.ring.Ended(in, time.Second, 0)
	}
	f := func(pool, key, strategy, want string) {
		t.Helper()
		if got := e.why(pool, key, strategy); got != "warmpath why "+want+" --admin host:1" {
			t.Errorf("%s %s %s: %s; want %s", pool, key, strategy, got, want)
		}
	}
	f("p", "", "mine", "p-mine-trap")
	f("p", "", "other", "p-other-rejected_by_strategy")
	f("p", "", "", "p-mine-")
	f("q", "", "other", "last")
	f("p", "team-a", "", "last")
}
