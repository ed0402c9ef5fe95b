package operator

import (
	"fmt"
	"strings"
	"time"
)

// Warning is what an operator should see first, beside pools and workers that are not up, with what to do about it.
type Warning struct {
	About string `json:"about"` // redis, kv_cache.l2, history, tracing, access_log, certificate, shedding
	Text  string `json:"text"`
	Do    string `json:"do"` // a command, or what to change
}

// warnings lists what is wrong now.
func warnings(n *counts, t *trends, now time.Time) []Warning {
	all := []Warning{}
	add := func(about, text, do string) { all = append(all, Warning{About: about, Text: text, Do: do}) }
	if l2 := n.store.L2; l2.Configured && l2.Open {
		add("redis", fmt.Sprintf("the Redis of [cache] does not answer: sessions live in this router's memory alone; %d "+
			"changes wait for it", l2.Owing), "look at that Redis; the log says what it answered")
	}
	if n.kvOpen && n.kv.L2 != nil {
		for i := range n.kv.L2.Servers {
			if x := &n.kv.L2.Servers[i]; x.DownFor > 0 {
				add("kv_cache.l2", fmt.Sprintf("%s has not answered for %s: its values are misses", x.Address,
					x.DownFor.Round(time.Second)), "look at that server; warmpath cache stat has its counts")
			} else if x.Refuses != "" {
				add("kv_cache.l2", fmt.Sprintf("%s takes no value: %s", x.Address, x.Refuses), "look at that server")
			}
		}
	}
	if n.peers.On && !n.peers.Connected {
		add("history", "the Redis of the history is lost: routers do not hear of each other: "+n.peers.Err,
			"look at that Redis; until then drain at each router")
	}
	if lost, rising := t.of(spansLost); rising {
		add("tracing", fmt.Sprintf("%d spans are lost, the collector takes none", lost.grown()),
			"see that the collector of [tracing] runs and that this machine reaches it")
	}
	if lost, rising := t.of(linesLost); rising {
		add("access_log", fmt.Sprintf("%d lines of the access log are lost", lost.grown()),
			"free the disk, or correct server.access_log")
	}
	for _, c := range describeCertificates(n.certs, now) {
		if c.State != certificateOK {
			add("certificate", fmt.Sprintf("the certificate of %s, %s, %s: %s", c.Listener, c.File, is(c.State),
				c.NotAfter.UTC().Format(time.RFC3339)), "renew it: no restart is needed")
		}
		if c.Refused != "" {
			add("certificate", strings.TrimPrefix(c.Refused, "listen: "), "no restart is needed")
		}
	}
	for pool, x := range t.shedding() {
		add("shedding", fmt.Sprintf("pool %s refused %d requests in %s, as its workers are full", pool, x.grown(),
			now.Sub(x.began).Round(time.Second)),
			"add workers, or raise max_in_flight; warmpath top shows by KEY who sends them")
	}
	return all
}

// is puts a certificate's state into a sentence.
func is(state string) string {
	if state == "ends soon" {
		return state
	}
	return "is " + state
}
