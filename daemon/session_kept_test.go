package daemon

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/redistest"
	"github.com/warmpath/warmpath/daemon/request/session"
)

// echo is a worker that says its name in the header Worker.
func echo(t *testing.T, name string) string {
	return fakeWorker(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Worker", name)
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, completion)
	}).URL
}

func echoes(t *testing.T, n int) (urls []string) {
	for i := range n {
		urls = append(urls, echo(t, fmt.Sprintf("w%d", i+1)))
	}
	return urls
}

// bindAlways has the router keep a session at its worker, whatever the strategy.
const bindAlways = "[sessions]\nbind = \"always\"\n"

const hello = `{"model":"sim","prompt":"hello","max_tokens":1}`

// at sends a completion and returns the worker that answered.
func (r *running) at(header ...string) string {
	r.t.Helper()
	s := r.do("POST", "/v1/completions", hello, header...)
	if s.status != 200 {
		r.t.Fatalf("%v: %d %s", header, s.status, s.body)
	}
	return s.header.Get("Worker")
}

func TestASessionStaysUnderEveryStrategy(t *testing.T) {
	t.Parallel()
	urls := echoes(t, 3)
	for _, strategy := range []string{"roundrobin", "prefixaware", "kvaware", "session"} {
		r := start(t, bindAlways+settings(strategy, urls...), 3)
		used := map[string]bool{}
		for i := range 6 {
			id := fmt.Sprintf("conversation-%d", i)
			home := r.at("X-Session-Id", id)
			used[home] = true
			for range 5 {
				r.at() // others come in between
				if now := r.at("x-session-id", id); now != home {
					t.Fatalf("%s: the session moved from %s to %s", strategy, home, now)
				}
			}
		}
		if len(used) < 2 {
			t.Errorf("%s: all sessions are on one worker", strategy)
		}
		_ = r.stop()
	}
}

func TestSessionsOutliveARestartAndAreShared(t *testing.T) {
	t.Parallel()
	urls := echoes(t, 4)
	toml := fmt.Sprintf("[cache]\nredis = %q\n", redistest.Start(t).URL()) + bindAlways + settings("roundrobin", urls...)
	first := start(t, toml, 4)
	home := map[string]string{}
	for i := range 400 {
		id := fmt.Sprintf("s%d", i)
		home[id] = first.at("X-Session-Id", id)
	}
	second := start(t, toml, 4)
	check := func(r *running, who string) {
		t.Helper()
		for id, want := range home {
			if got := r.at("X-Session-Id", id); got != want {
				t.Fatalf("%s: session %s was on %s and is on %s", who, id, want, got)
			}
		}
	}
	check(second, "a second router")
	if err := first.stop(); err != nil {
		t.Fatal(err)
	}
	check(start(t, toml, 0), "the restarted router, before it has heard of its workers")
}

func TestWhatBecomesOfSessionsWhoseWorkerIsGone(t *testing.T) {
	t.Parallel()
	for _, policy := range []string{"rehome", "error"} {
		urls := echoes(t, 2)
		dying := fakeWorker(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Worker", "w3")
			io.WriteString(w, `{"choices":[]}`)
		})
		r := start(t, bindAlways+"on_worker_down = \""+policy+"\"\n"+settings("roundrobin", append(urls, dying.URL)...), 3)
		id := ""
		for i := 0; ; i++ {
			if id = fmt.Sprint("s", i); r.at("X-Session-Id", id) == "w3" {
				break
			}
		}
		dying.CloseClientConnections()
		dying.Close()
		r.waitUp(2)
		s := r.do("POST", "/v1/completions", hello, "X-Session-Id", id)
		if policy == "error" {
			if s.status != 400 || !strings.Contains(s.body, "session_lost") {
				t.Errorf("%s: %d %s", policy, s.status, s.body)
			}
			s = r.do("POST", "/v1/completions", hello, "X-Session-Id", id) // it has been told, and opens a new one
		}
		home := s.header.Get("Worker")
		if s.status != 200 || home == "w3" || home == "" {
			t.Fatalf("%s: %d at %q", policy, s.status, home)
		}
		for range 5 {
			if now := r.at("X-Session-Id", id); now != home {
				t.Errorf("%s: the session did not stay at %s: %s", policy, home, now)
			}
		}
		_ = r.stop()
	}
}

func TestADrainingWorkerKeepsItsSessions(t *testing.T) {
	r := start(t, bindAlways+settings("roundrobin", echoes(t, 3)...), 3)
	home := r.at("X-Session-Id", "mine")
	if !r.state.Load().pools[0].route.Workers.Drain(home, true, time.Now()) {
		t.Fatal("no such worker")
	}
	for range 6 {
		if at := r.at("X-Session-Id", "mine"); at != home {
			t.Fatalf("the session moved from %s to %s", home, at)
		}
		if at := r.at(); at == home {
			t.Fatal("a draining worker got a request of no session")
		}
	}
}

func TestTheRoutersCookie(t *testing.T) {
	r := start(t, bindAlways+"cookie = \"wp\"\n"+settings("roundrobin", echoes(t, 3)...), 3)
	s := r.do("POST", "/v1/completions", hello)
	set := s.header.Get("Set-Cookie")
	value, rest, _ := strings.Cut(strings.TrimPrefix(set, "wp="), ";")
	for _, attribute := range []string{"Path=/", "HttpOnly", "SameSite=Lax"} {
		if !strings.Contains(rest, attribute) {
			t.Errorf("Set-Cookie: %s; want %s", set, attribute)
		}
	}
	if strings.Contains(set, "Secure") || !session.Minted(value) || strings.Contains(set, "127") {
		t.Errorf("Set-Cookie: %s", set)
	}
	for range 5 {
		s2 := r.do("POST", "/v1/completions", hello, "Cookie", "other=1; wp="+value)
		if s2.header.Get("Worker") != s.header.Get("Worker") || s2.header.Get("Set-Cookie") != "" {
			t.Errorf("at %s, %q; was at %s", s2.header.Get("Worker"), s2.header.Get("Set-Cookie"), s.header.Get("Worker"))
		}
		r.do("POST", "/v1/completions", hello, "X-Session-Id", "another")
	}
}

func TestAFailedFirstRequestLeavesNoBinding(t *testing.T) {
	w := fakeWorker(t, func(w http.ResponseWriter, _ *http.Request) { http.Error(w, `{"error":{}}`, 400) })
	r := start(t, settings("session", w.URL), 1)
	for i := range 20 {
		r.do("POST", "/v1/completions", hello, "X-Session-Id", fmt.Sprint(i))
	}
	if live := r.state.Load().pools[0].route.Sessions.Live(time.Now()); len(live) != 0 {
		t.Errorf("bindings left: %v", live)
	}
}

func TestBodyFieldsNameASessionInTheirOrder(t *testing.T) {
	r := start(t, "[sessions]\nidentity = [\"body.user\", \"body.session_id\"]\n"+settings("session", echoes(t, 4)...), 4)
	send := func(fields string) string {
		return r.do("POST", "/v1/completions", `{"model":"sim","prompt":"x",`+fields+`}`).header.Get("Worker")
	}
	for i := range 8 {
		home := send(fmt.Sprintf(`"user":"u%d"`, i))
		if at := send(fmt.Sprintf(`"session_id":"other","user":"u%d"`, i)); at != home {
			t.Errorf("user u%d: at %s and at %s", i, home, at)
		}
	}
	n := r.live()
	if send(`"prompt_cache_key":"k"`); r.live() != n {
		t.Error("a field that is not listed named a session")
	}
}

// untilHeard asks again, as SDKs do, while the router says that Redis was late: on a busy machine 5 ms are soon over.
func (r *running) untilHeard(path, body, id string) (s seen) {
	for range 100 {
		if s = r.do("POST", path, body, sessionID, id); s.status != 503 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	return s
}

// Two routers with one Redis serve, end and refuse each other's sessions.
func TestOpenedSessionsAreShared(t *testing.T) {
	url := redistest.Start(t).URL()
	k, worker := newKeeper(t, "w1")
	other, otherURL := newKeeper(t, "w2")
	toml := fmt.Sprintf("[cache]\nredis = %q\n", url) + settings("roundrobin", worker, otherURL)
	a, b := start(t, toml, 2), start(t, toml, 2)
	for range 6 {
		id, at := a.opens(invoke, openBody)
		if s := b.untilHeard(invoke, hello, id); s.status != 200 || s.header.Get("Worker") != at {
			t.Fatalf("at the second router: %d at %s; want %s", s.status, s.header.Get("Worker"), at)
		}
		if s := b.untilHeard(invoke, closeBody, id); s.status != 200 {
			t.Fatalf("close at the second router: %d %s", s.status, s.body)
		}
		eventually(t, "the first router refuses it", func() bool { return a.do("POST", invoke, hello, sessionID, id).status == 400 })
	}
	if len(k.live)+len(other.live) != 0 {
		t.Errorf("left at the workers: %v %v", k.live, other.live)
	}
}

// Without its Redis a router goes on with what it has in memory.
func TestRedisIsNotThere(t *testing.T) {
	toml := "[cache]\nredis = \"unix:///nowhere/r.sock\"\n" + bindAlways + settings("roundrobin", echoes(t, 3)...)
	r := start(t, toml, 3)
	for i := range 20 {
		id := fmt.Sprint("s", i)
		home := r.at("X-Session-Id", id)
		for range 3 {
			if at := r.at("X-Session-Id", id); at != home {
				t.Fatalf("session %s moved from %s to %s", id, home, at)
			}
		}
	}
}

// Requests for a session that has ended take no turn from those beside them: each second one would go to one worker.
func TestARefusedRequestTakesNoTurn(t *testing.T) {
	r := start(t, settings("roundrobin", echoes(t, 2)...), 2)
	var made struct{ ID string }
	_ = json.Unmarshal([]byte(r.do("POST", "/sessions", `{"model":"sim"}`).body), &made)
	if s := r.do("DELETE", "/sessions/"+made.ID, ""); s.status != 204 {
		t.Fatalf("closed: %d %s", s.status, s.body)
	}
	before := r.at()
	for i := range 6 {
		if s := r.do("POST", "/v1/completions", hello, "X-Session-Id", made.ID); s.status != 400 {
			t.Fatalf("a closed session: %d %s", s.status, s.body)
		}
		now := r.at()
		if now == before {
			t.Fatalf("request %d goes to %s as the one before", i, now)
		}
		before = now
	}
}
