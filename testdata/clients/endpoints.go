package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
)

// The endpoints of the SageMaker checks, each a pool of one router:
//
//	lasting   2 workers that keep sessions
//	brief     1 that keeps them for briefLife
//	plain     2 that keep none: the router does
//	faulty    1 that is told to fail
//	busy      1 that takes one request at a time
//	down      nobody
const briefLife = "2s"

// openEndpoints starts a router with them. workers are those of lasting.
func openEndpoints(ctx context.Context, root, binary string) (*fleet, error) {
	dir, err := os.MkdirTemp("", "warmpath-clients-")
	if err != nil {
		return nil, err
	}
	h := &fleet{root: root, dir: dir}
	if err := h.startEndpoints(ctx, binary); err != nil {
		h.close()
		return nil, err
	}
	return h, nil
}

func (h *fleet) startEndpoints(ctx context.Context, binary string) error {
	ctx, cancel := context.WithTimeout(ctx, startup)
	defer cancel()
	keeping, err := h.sim(ctx, binary, 4, "--sessions")
	if err != nil {
		return err
	}
	brief, err := h.sim(ctx, binary, 1, "--sessions", "--session-life", briefLife)
	if err != nil {
		return err
	}
	plain, err := h.sim(ctx, binary, 2)
	if err != nil {
		return err
	}
	var b strings.Builder
	b.WriteString("[server]\nlisten = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\nmax_body_bytes = 1_000_000_000\n")
	for _, p := range []struct {
		name, more string
		workers    []string
	}{
		{"lasting", "", keeping[:2]}, {"brief", "", brief}, {"plain", "", plain}, {"faulty", "retry_budget = 0.0\n",
			keeping[2:3]},
		{"busy", "max_in_flight = 1\nqueue.max_requests = 0\n", keeping[3:]}, {"down", "",
			[]string{"http://127.0.0.1:9"}}, // discard, which nobody serves
	} {
		fmt.Fprintf(&b, "[[pools]]\nname = %q\nmodels = [%q] # none asks for it: the endpoint names the "+
			"pool\nhealth_interval = \"500ms\"\n%s", p.name, p.name, p.more)
		b.WriteString(h.workersOf(p.workers))
	}
	h.workers = keeping[:2]
	h.env = []string{"WARMPATH_FAULTY=" + keeping[2], "WARMPATH_BUSY=" + keeping[3], "AWS_EC2_METADATA_DISABLED=true"}
	return h.serve(ctx, binary, b.String())
}

// variable is one of env.
func (h *fleet) variable(name string) string {
	for _, v := range h.env {
		if value, ok := strings.CutPrefix(v, name+"="); ok {
			return value
		}
	}
	return ""
}

// sessionStats is what /sim/stats tells of sessions.
type sessionStats struct {
	Sessions int
	Bytes    int64 `json:"session_bytes"`
	Uses     int64 `json:"session_uses"`
	Running  int
}

func statsOf(url string) (s sessionStats, err error) {
	r, err := http.Get(url + "/sim/stats")
	if err != nil {
		return s, err
	}
	defer r.Body.Close()
	return s, json.NewDecoder(r.Body).Decode(&s)
}

// kept sums the sessions of the workers of lasting, and tells the uses of each.
func (h *fleet) kept() (sum sessionStats, uses []int64, err error) {
	for _, u := range h.workers {
		s, e := statsOf(u)
		err = errors.Join(err, e)
		sum.Sessions, sum.Bytes, sum.Uses = sum.Sessions+s.Sessions, sum.Bytes+s.Bytes, sum.Uses+s.Uses
		uses = append(uses, s.Uses)
	}
	return sum, uses, err
}

// fault sets a fault of a worker.
func fault(ctx context.Context, url, body string) error {
	_, err := send(ctx, "POST", url+"/sim/fault", body)
	return err
}
