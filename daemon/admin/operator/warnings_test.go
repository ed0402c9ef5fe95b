package operator

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/cache/kvstore/remote"
	"github.com/warmpath/warmpath/cache/tier"
	"github.com/warmpath/warmpath/daemon/peers"
	"github.com/warmpath/warmpath/daemon/request/route"
	"github.com/warmpath/warmpath/daemon/transport/certificate"
)

// healthy is evidence of a pool "p" whose workers are up.
func healthy(ids ...string) *evidence {
	o := &Overview{Reload: Reload{OK: true}, Pools: []PoolOverview{{PoolState: PoolState{Name: "p"}}}}
	for _, id := range ids {
		o.Pools[0].Workers = append(o.Pools[0].Workers, WorkerState{ID: id, State: "up", Breaker: "closed"})
	}
	return &evidence{Overview: o, lacking: map[string]float64{}, trends: &trends{}, commands: commands{file: "w.toml", admin: " --admin host:1"}}
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
	f("bad: pool p cannot serve | no worker is up; a down, b down, c down: connection refused | "+probe, func(_ *evidence, p *PoolOverview) {
		p.WhyNot = WhyEmpty
		for i := range p.Workers {
			p.Workers[i].State, p.Workers[i].LastError = "down", "connection refused"
		}
	})
	f("bad: pool p serves by panic alone | "+WhyPanics+"; a silent | "+probe, func(_ *evidence, p *PoolOverview) {
		p.WhyNot, p.Panics, p.Workers = WhyPanics, true, p.Workers[:1]
		p.Workers[0].State = "silent"
	})
	f("bad: pool p cannot serve | no worker is up; its sources name no worker | "+probe, func(_ *evidence, p *PoolOverview) {
		p.WhyNot, p.Workers = WhyEmpty, nil
	})
	f("bad: pool p cannot serve | "+WhyUnfit+" | "+probe, func(_ *evidence, p *PoolOverview) { p.WhyNot = WhyUnfit })
	f("warn: file refused | the configuration in force stays: w.toml:3: no | "+check, func(e *evidence, _ *PoolOverview) {
		e.Reload = Reload{Error: "w.toml:3: no\nw.toml:4: nor this"}
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
		for _, name := range []string{spansLost, linesLost} {
			e.trends.see(name, 0, time.Now())
			e.trends.see(name, 7, time.Now())
		}
	})
	f("bad: pool p refuses requests | some 7 in the last minute, as its workers had max_in_flight requests or refused more; "+
		"some 5 workers would have had a place for all | warmpath top --admin host:1",
		func(e *evidence, p *PoolOverview) { e.lacking["p"], p.Wanted = 7.2, 5 })
}

func TestWarningsOfPreemptions(t *testing.T) {
	holdWarnings(t, "warn: engines of p lack KV | they put 7 requests back, to be computed again: bound what a worker gets (max_in_flight), "+
		"add workers, or give the engines more memory | warmpath status --admin host:1", func(e *evidence, _ *PoolOverview) {
		e.trends.see(preemptsOf+"p", 0, time.Now())
		e.trends.see(preemptsOf+"p", 7, time.Now())
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
	f("bad: pool p cannot serve | "+WhyEmpty+"; a down: x | "+probe+"\nwarn: file refused | the configuration in force stays: no | "+check,
		func(e *evidence, p *PoolOverview) { // the worst first
			e.Reload = Reload{Error: "no"}
			p.WhyNot, p.Workers = WhyEmpty, p.Workers[:1]
			p.Workers[0].State, p.Workers[0].LastError = "down", "x"
		})
}

// However much is wrong, the list is bounded, and so is each text.
func TestWarningsAreBounded(t *testing.T) {
	e := healthy()
	for i := range 200 {
		p := PoolOverview{PoolState: PoolState{Name: fmt.Sprint("pool", i), WhyNot: WhyEmpty}}
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

// A command can be copied: it names the listener where that is not the default, and the token's file.
func TestAdminFlags(t *testing.T) {
	f := func(addr, token, want string) {
		t.Helper()
		if got := adminFlags(addr, token); got != want {
			t.Errorf("%s, %q: %q; want %q", addr, token, got, want)
		}
	}
	f("127.0.0.1:9090", "", "")
	f("127.0.0.1:9091", "", " --admin 127.0.0.1:9091")
	f("0.0.0.0:9090", "/run/token", " --token-file /run/token")
	f("[::]:9091", "", " --admin 127.0.0.1:9091")
	f("10.0.0.1:9090", "", " --admin 10.0.0.1:9090")
}
