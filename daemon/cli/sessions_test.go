package cli

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/daemon/admin/operator"
)

const someSessions = `[{"pool":"main","workers":[{"worker":"w1","opened":2,"keys":3,"responses":0}],
"sessions":[{"fingerprint":"abc","kind":"opened","worker":"w1","held_by_worker":true,"created":"2026-11-21T10:00:00Z","expires":"2026-11-21T10:20:00Z"}],"cut":true}]`

func TestSessions(t *testing.T) {
	admin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/api/v1/pools":
			io.WriteString(w, `[{"name":"main","workers":[{"id":"w1"}]}]`)
			return
		case r.URL.Query().Get("worker") == "nosuch":
			io.WriteString(w, `[{"pool":"main","workers":[],"sessions":[]}]`)
			return
		case r.URL.Query().Get("worker") != "w1":
			http.Error(w, "which worker?", 400)
			return
		}
		io.WriteString(w, someSessions)
	}))
	defer admin.Close()
	p := warmpath(t, workplace(t), "sessions --worker w1 --admin "+strings.TrimPrefix(admin.URL, "http://"))
	if code := p.end(); code != 0 || !strings.Contains(p.out.String(), "main  w1      2       3     0") ||
		!strings.Contains(p.out.String(), "abc      opened  w1") || !strings.Contains(p.out.String(), "--limit") {
		t.Errorf("exit %d:\n%s", code, p)
	}
	p = warmpath(t, workplace(t), "sessions --worker nosuch --admin "+admin.URL)
	if code := p.end(); code != 1 || !strings.Contains(p.String(), `no worker "nosuch"; there are w1`) {
		t.Errorf("exit %d:\n%s", code, p)
	}
	p = warmpath(t, workplace(t), "sessions --json --worker w1 --admin "+admin.URL)
	var pools []operator.PoolSessions
	if code := p.end(); code != 0 || json.Unmarshal(p.out.Bytes(), &pools) != nil || len(pools) != 1 || !pools[0].Cut {
		t.Errorf("exit %d:\n%s", code, p)
	}
	p = warmpath(t, workplace(t), "sessions --admin "+admin.URL)
	if code := p.end(); code != 1 || !strings.Contains(p.String(), "which worker?") {
		t.Errorf("exit %d:\n%s", code, p)
	}
}
