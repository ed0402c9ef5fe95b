package handoff

import (
	"context"
	crand "crypto/rand"
	"encoding/json"
	"io"
	"math/rand/v2"
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

// meet sets where the two workers meet, and reports whether that is known.
func (p *Pairing) meet(ctx context.Context, l *leg) bool {
	p.Host, p.ID, p.Room = l.host(), crand.Text(), rand.Uint64N(1<<62)
	if p.Connector.Proof() != pair.ByBootstrap {
		return true
	}
	p.Engine = l.engine(ctx, p.rule, p.Host)
	if p.Engine == "" {
		l.result = journal.PrefillUnnamed
		l.inner.Release() // it may have the turn of the queue, and nobody else has one meanwhile
	}
	return p.Engine != ""
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
	l.lacks = "no bootstrap server answers at bootstrap_port " + port
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+net.JoinHostPort(host, port)+"/query", nil)
	if err != nil {
		return ""
	}
	resp, err := bootstraps.Do(r)
	if err != nil {
		return ""
	}
	defer resp.Body.Close()
	l.lacks = "what answers at bootstrap_port " + port + " names no engine"
	text, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil || !json.Valid(text) {
		return ""
	}
	rank, _ := strconv.Atoi(l.inner.Chosen().RankHeader())
	id := pair.EngineOf(text, rank)
	if id != "" {
		l.lacks = ""
	}
	return id
}
