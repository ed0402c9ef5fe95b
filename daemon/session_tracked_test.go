package daemon

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"math"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/request/sagemaker"
	"github.com/warmpath/warmpath/daemon/request/sessionapi"
)

// trackedSession is one session under test: how a client names it, and where it lives.
type trackedSession struct {
	path   string
	header string
	id     string
	opened bool   // by a request for it: it must never be served elsewhere
	cold   bool   // the second router has not seen it before the silence
	home   string // the worker that answered first

	aside [2]atomic.Bool // whether a router holds a choice that it made while Redis was late
}

// trackedSessions are sessions used through two routers that share a Redis.
type trackedSessions struct {
	t       *testing.T
	routers [2]*running
	workers []string
	all     []*trackedSession

	silence atomic.Bool // from before the stop until both routers have told Redis all

	wrong, noSuch, failed, refused, aside atomic.Int64
}

// ask sends one request of a session. It returns the worker; "" if the router said that it cannot know now.
func (l *trackedSessions) ask(r *running, s *trackedSession) string {
	req, _ := http.NewRequest("POST", "http://"+r.Addr()+s.path, strings.NewReader(hello))
	req.Header.Set(s.header, s.id)
	req.Header.Set("X-Warmpath-Explain", "1")
	resp, err := testClient.Do(req)
	if err != nil {
		l.fail("%s: %v", s.id, err)
		return ""
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	at := resp.Header.Get("Worker")
	held := &s.aside[0]
	if r == l.routers[1] {
		held = &s.aside[1]
	}
	switch {
	case resp.StatusCode == 400:
		if l.noSuch.Add(1) <= 3 {
			l.t.Errorf("%s on %s: 400 %s", s.id, s.path, text)
		}
	case resp.StatusCode == 503 && s.opened && resp.Header.Get("Retry-After") != "" && strings.Contains(string(text), "does not answer"):
		l.refused.Add(1)
		if aws := resp.Header.Get(errorField); strings.HasPrefix(s.path, "/endpoints/") != (aws == "ServiceUnavailable") {
			l.fail("a 503 on %s in the wrong shape: %s %s", s.path, aws, text)
		}
	case resp.StatusCode != 200:
		l.fail("%s on %s: %d %s", s.id, s.path, resp.StatusCode, text)
	case s.home == "" || at == s.home:
		held.Store(false)
		return at
	case !s.opened && (strings.HasPrefix(resp.Header.Get("X-Warmpath-Reason"), "store silent") || held.Load() ||
		s.cold && r == l.routers[1] && l.silence.Load()):
		held.Store(true) // the router keeps this choice until Redis has heard of it, which then names the home
		l.aside.Add(1)
		if want := alike(s.id, l.workers); at != want {
			l.fail("%s was served by %s; every router chooses %s", s.id, at, want)
		}
		return at
	default:
		if l.wrong.Add(1) <= 3 {
			l.t.Errorf("%s (opened %v) is at %s; its home is %s; reason %q", s.id, s.opened, at, s.home, resp.Header.Get("X-Warmpath-Reason"))
		}
		return at
	}
	return ""
}

func (l *trackedSessions) fail(form string, args ...any) {
	if l.failed.Add(1) <= 3 {
		l.t.Errorf(form, args...)
	}
}

// alike is the worker that every router chooses for a key while the store is silent.
func alike(id string, workers []string) (best string) {
	most := 0.0
	for _, w := range workers {
		if p := draw("\x00\x00" + id + "\x00" + w); best == "" || p > most {
			best, most = w, p
		}
	}
	return best
}

// draw is rendezvous hashing's number for a worker of weight 1: -1/ln u, u from FNV-1a and the finish of MurmurHash3.
func draw(text string) float64 {
	hash := fnv.New64a()
	hash.Write([]byte(text))
	h := hash.Sum64()
	for _, factor := range []uint64{0xff51afd7ed558ccd, 0xc4ceb9fe1a85ec53} {
		h ^= h >> 33
		h *= factor
	}
	h ^= h >> 33
	return -1 / math.Log((float64(h>>11)+0.5)/(1<<53))
}

// each calls f for the sessions, eight at a time, as many as clients would.
func (l *trackedSessions) each(some []*trackedSession, f func(*trackedSession)) {
	var next atomic.Int64
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := int(next.Add(1) - 1); i < len(some); i = int(next.Add(1) - 1) {
				f(some[i])
			}
		})
	}
	wg.Wait()
}

// open makes the sessions at the first router: keys, ids of POST /sessions under two headers' names, and SageMaker's.
func (l *trackedSessions) open(keys, plain, aws int) {
	for i := range keys {
		l.all = append(l.all, &trackedSession{path: "/v1/completions", header: "X-Session-Id", id: fmt.Sprintf("key-%d", i), cold: i%4 == 0})
	}
	for i := range plain {
		l.all = append(l.all, &trackedSession{path: "/v1/completions", header: "X-Session-Id", opened: true, cold: i%2 == 0})
	}
	for i := range aws {
		l.all = append(l.all, &trackedSession{path: invoke, header: sessionID, opened: true, cold: i%2 == 0})
	}
	first := l.routers[0]
	l.each(l.all, func(s *trackedSession) {
		switch {
		case !s.opened:
		case s.path == invoke:
			r := first.do("POST", invoke, hello, sessionID, "NEW_SESSION")
			s.id, _, _ = sagemaker.ParseNew(r.header.Get(newID))
			s.home = r.header.Get("Worker")
		default:
			var made sessionapi.Session
			_ = json.Unmarshal([]byte(first.do("POST", "/sessions", `{"model":"sim"}`).body), &made)
			s.id = made.ID
		}
		if s.id == "" {
			l.fail("a session was not opened")
		}
		if s.home == "" {
			s.home = l.ask(first, s)
		}
	})
}

// settled waits until both routers have heard Redis and told it all, and for what they may still take for fresh.
func (l *trackedSessions) settled() {
	eventually(l.t, "both routers have told Redis everything", func() bool {
		for _, r := range l.routers {
			if st := r.tier.Stats().L2; st.Open || st.Owing > 0 {
				return false
			}
		}
		return true
	})
	time.Sleep(1100 * time.Millisecond)
}

// homesHold checks that each session is at its home at both routers.
func (l *trackedSessions) homesHold(all []*trackedSession) {
	l.t.Helper()
	for i, r := range l.routers {
		var elsewhere atomic.Int64
		l.each(all, func(s *trackedSession) {
			for range 20 { // Redis may be late for a single call on a busy machine
				if l.ask(r, s) == s.home {
					return
				}
				time.Sleep(50 * time.Millisecond)
			}
			elsewhere.Add(1)
		})
		if l.t.Logf("router %d afterwards: %d sessions elsewhere", i+1, elsewhere.Load()); elsewhere.Load() > 0 {
			l.t.Errorf("%d sessions live elsewhere at router %d", elsewhere.Load(), i+1)
		}
	}
}
