package operator

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/admin/metrics"
	"github.com/warmpath/warmpath/daemon/admin/readiness"
	"github.com/warmpath/warmpath/daemon/admin/readiness/readinesstest"
	"github.com/warmpath/warmpath/daemon/fleet/judge"
	"github.com/warmpath/warmpath/daemon/request/journal"
	"github.com/warmpath/warmpath/daemon/request/message"
	"github.com/warmpath/warmpath/daemon/request/record"
)

// of is a process with these pools.
type of struct {
	serving
	pools []*readiness.Pool
}

func (p of) Pools() []*readiness.Pool { return p.pools }

// ask has a server with these pools and metrics answer, and reads the answer into v. It returns the status.
func ask(t *testing.T, m *metrics.Metrics, pools []*readiness.Pool, path string, v any) int {
	t.Helper()
	s := &Server{c: Config{Metrics: m, Process: of{pools: pools}}}
	r := httptest.NewRequest("GET", path, nil)
	r.Host = "127.0.0.1"
	answer, err := s.newApp(s.c).Test(r)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode == 200 {
		err = json.Unmarshal(text, v)
	}
	if err != nil {
		t.Fatalf("%s: %v: %s", path, err, text)
	}
	return answer.StatusCode
}

// The timeline has requests and workers in the same spans, of one pool or all, and what happened to both and to the file.
func TestTimelinePage(t *testing.T) {
	m := metrics.NewMetrics("v1")
	a, b := readinesstest.NewFleet(t, "w1 w2"), readinesstest.NewFleet(t, "w3")
	b.Name = "q"
	pools := []*readiness.Pool{a.Pool, b.Pool}
	now := time.Now()
	m.Began(true, now)
	m.Look(pools, now)
	a.Become(t, "w2", "down")
	m.Look(pools, now)
	m.Reloaded(metrics.Reload{At: now, OK: true}) // nothing has changed
	m.Reloaded(metrics.Reload{At: now, OK: true, Changed: []string{"pools.p.strategy"}})
	m.Reloaded(metrics.Reload{At: now, Error: "line 3"})
	m.Arrived(&message.Seen{Record: record.Record{Pool: "p"}})
	m.Arrived(&message.Seen{Record: record.Record{Pool: "q"}})
	f := func(path string, status, arrived, curves int, events string) {
		t.Helper()
		var h LastHour
		if got := ask(t, m, pools, path, &h); got != status || status != 200 {
			if got != status {
				t.Errorf("%s: %d; want %d", path, got, status)
			}
			return
		}
		sum, told := 0, ""
		for i, s := range h.Spans {
			sum += int(s.Arrived)
			if !s.At.Equal(h.Load[i].At) {
				t.Fatalf("%s: span %d begins at %s and its load at %s", path, i, s.At, h.Load[i].At)
			}
		}
		for _, e := range h.Marks {
			told += fmt.Sprint(e.Kind, e.Workers, e.Text, " ")
		}
		if sum != arrived || len(h.Curves) != curves || told != events || h.Step != 30 {
			t.Errorf("%s: %d came, %d curves, %s; want %d, %d, %s", path, sum, len(h.Curves), told, arrived, curves, events)
		}
	}
	const ofProcess = "reload[]pools.p.strategy refused[]line 3 "
	f("/api/v1/timeline", 200, 2, 0, "upgrade[]v1 down[w2] "+ofProcess)
	f("/api/v1/timeline?pool=p&curves=1", 200, 1, 2, "upgrade[]v1 down[w2] "+ofProcess)
	f("/api/v1/timeline?pool=q&curves=1", 200, 1, 1, "upgrade[]v1 "+ofProcess)
	f("/api/v1/timeline?pool=r", 404, 0, 0, "")
}

// The counts of a key are summed over pools and models.
func TestKeysPage(t *testing.T) {
	m := metrics.NewMetrics("v1")
	for i, pool := range []string{"p", "q"} {
		s := &message.Seen{Key: "team-a", Record: record.Record{Pool: pool, Model: "m", Strategy: "s", PromptTokens: 100,
			Usage: record.Usage{Known: true, Prompt: 90, Cached: 60, CachedKnown: true, Output: 10}}}
		m.Arrived(s)
		m.Picked(s)
		m.Ended(s, journal.End{Status: 200, Outcome: judge.Outcome{Kind: judge.Answered}})
		if i == 0 {
			m.Refused(s, message.FaultFull, 429, 0)
		}
	}
	left := &message.Seen{Key: "team-b", Record: record.Record{Pool: "p"}}
	m.Arrived(left)
	m.Refused(left, message.Fault{Cause: message.ClientLeft}, 499, 0) // nobody refused it
	var got []metrics.KeyState
	ask(t, m, nil, "/api/v1/keys", &got)
	want := []metrics.KeyState{{Key: "team-a", Arrived: 2, Refused: 1, Routed: 200, Prompt: 180, Cached: 120, Output: 20}, {Key: "team-b", Arrived: 1}}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%+v; want %+v", got, want)
	}
}
