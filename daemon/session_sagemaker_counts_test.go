package daemon

import (
	"fmt"
	"maps"
	"path/filepath"
	"testing"
)

// TestSageMakersCountsAreTheClients: the access log and requests_total name the status that the client got, not the
// worker's.
func TestSageMakersCountsAreTheClients(t *testing.T) {
	_, url := newKeeper(t, "w1")
	log := filepath.Join(t.TempDir(), "access.log")
	r := start(t, withServer(settings("roundrobin", url), fmt.Sprintf("access_log = %q", log)), 1)
	got := map[float64]float64{}
	f := func(want int, path, body string, header ...string) seen {
		t.Helper()
		s := r.do("POST", path, body, append(header, "Authorization", sigV4)...)
		if s.status != want {
			t.Errorf("%s %s: %d %s; want %d", path, body, s.status, s.body, want)
		}
		got[float64(s.status)]++
		return s
	}
	f(200, invoke, hello)
	f(424, invoke, `{"model":"sim","prompt":"please fail"}`)
	f(422, "/invocations", `{"model":"sim","prompt":"please fail"}`)
	f(424, invoke, `{"model":"sim","prompt":"please fail"}`)
	id, _ := r.opens(invoke, openBody)
	got[200]++
	f(200, invoke, hello, sessionID, id)
	f(200, invoke, closeBody, sessionID, id)
	f(400, invoke, hello, sessionID, id)
	written := map[float64]float64{}
	eventually(t, "a line each", func() bool {
		clear(written)
		for _, m := range logged(t, log) {
			written[m["status"].(float64)]++
		}
		return maps.Equal(written, got)
	})
	for code, n := range got {
		if c := r.metric("warmpath_requests_total", fmt.Sprintf(`code="%v"`, code)); c != n {
			t.Errorf("warmpath_requests_total has %v with code %v; the clients got %v", c, code, n)
		}
	}
	if c := r.metric("warmpath_requests_total", `model="sim"`, `worker="w1"`, `code="200"`); c < 2 {
		t.Errorf("%v answers of the model sim by w1 are counted; want at least 2", c)
	}
}
