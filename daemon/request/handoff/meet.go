package handoff

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/warmpath/warmpath/daemon/request/epoch"
	"github.com/warmpath/warmpath/daemon/request/journal"
	"github.com/warmpath/warmpath/daemon/request/pair"
	"github.com/warmpath/warmpath/daemon/transport/direct"
)

// meets returns what a leg does once it has its place at the prefiller: it asks for the id of the engine there, sends
// it to named, and sets met. The time for the prompt begins anew when that is known.
func (l *leg) meets(rule *epoch.Pairing, host string, met *bool, named chan<- string) func(ctx context.Context) bool {
	return func(ctx context.Context) bool {
		if *met {
			return true
		}
		engine := l.engine(ctx, rule, host)
		if engine == "" {
			if !l.missed.Load() {
				l.result = journal.PrefillUnnamed
			}
			return false
		}
		l.sent = time.Now()
		l.clock.Reset(l.limit.Limit)
		*met = true
		named <- engine
		return true
	}
}

// host returns the name or address of the prefiller that was chosen.
func (l *leg) host() string {
	u, err := url.Parse(l.inner.Chosen().URL())
	if err != nil {
		return ""
	}
	return u.Hostname()
}

// bootstraps asks the bootstrap servers of prefillers.
var bootstraps = direct.Client(nil, 2*time.Second)

// engine asks a prefiller's bootstrap server for the id of the engine that was chosen, "" if it does not say.
func (l *leg) engine(ctx context.Context, rule *epoch.Pairing, host string) string {
	port := strconv.Itoa(rule.Bootstrap)
	l.lacks = l.by.ID() + ": no bootstrap server answers at bootstrap_port " + port
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+net.JoinHostPort(host, port)+"/query", nil)
	if err != nil {
		return ""
	}
	resp, err := bootstraps.Do(r)
	if err != nil {
		return ""
	}
	defer resp.Body.Close()
	l.lacks = l.by.ID() + ": what answers at bootstrap_port " + port + " names no engine"
	text, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil || !json.Valid(text) {
		return ""
	}
	rank, _ := strconv.Atoi(l.by.RankHeader())
	id := pair.EngineOf(text, rank)
	if id != "" {
		l.lacks = ""
	}
	return id
}
