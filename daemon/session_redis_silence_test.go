package daemon

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/redistest"
	"github.com/warmpath/warmpath/daemon/request/session"
	"github.com/warmpath/warmpath/daemon/request/sessionapi"
)

// A Redis that stops for three seconds under load moves no session of two routers, under the default limits.
func TestAPauseOfRedisMovesNoSession(t *testing.T) {
	t.Parallel()
	for _, strategy := range []string{"roundrobin", "session"} {
		t.Run(strategy, func(t *testing.T) { pauseUnderLoad(t, strategy) })
	}
}

func pauseUnderLoad(t *testing.T, strategy string) {
	redis := redistest.Start(t)
	toml := fmt.Sprintf("[cache]\nredis = %q\n", redis.URL()) + bindAlways + settings(strategy, echoes(t, 4)...)
	l := &trackedSessions{t: t, routers: [2]*running{start(t, toml, 4), start(t, toml, 4)}, workers: []string{"w1", "w2", "w3", "w4"}}
	l.open(1000, 500, 500)
	l.each(l.all, func(s *trackedSession) {
		if !s.cold {
			l.ask(l.routers[1], s)
		}
	})
	t.Logf("opened and warm: %d answers aside, %d refused", l.aside.Load(), l.refused.Load())
	l.settled()
	var stop atomic.Bool
	var load sync.WaitGroup
	for g := range 8 {
		load.Go(func() {
			for i := g; !stop.Load(); i += 8 {
				l.ask(l.routers[(i/8+i/len(l.all))%2], l.all[i%len(l.all)])
			}
		})
	}
	time.Sleep(300 * time.Millisecond)
	l.silence.Store(true)
	redis.Signal(syscall.SIGSTOP)
	stopped := time.Now()
	var late []*trackedSession // whose first request comes in the silence
	for i := range 100 {
		late = append(late, &trackedSession{path: "/v1/completions", header: "X-Session-Id", id: fmt.Sprintf("late-%d", i)})
	}
	eventually(t, "both routers have found out", func() bool {
		return l.routers[0].tier.Stats().L2.Open && l.routers[1].tier.Stats().L2.Open
	})
	l.each(late, func(s *trackedSession) {
		s.home = l.ask(l.routers[0], s)
		l.ask(l.routers[1], s)
	})
	time.Sleep(time.Until(stopped.Add(3 * time.Second)))
	redis.Signal(syscall.SIGCONT)
	time.Sleep(time.Second)
	stop.Store(true)
	load.Wait()
	t.Logf("after the silence: %d answers aside, %d refused with 503", l.aside.Load(), l.refused.Load())
	l.settled()
	l.silence.Store(false)
	aside, refused := l.aside.Load(), l.refused.Load()
	l.homesHold(append(late, l.all...))
	t.Logf("wrong worker %d, no such session %d, failed %d; since healed: %d aside, %d refused", l.wrong.Load(), l.noSuch.Load(),
		l.failed.Load(), l.aside.Load()-aside, l.refused.Load()-refused)
}

// routersInSilence are two routers with a stopped Redis; the second holds nothing of what the first has opened, as they
// share no history.
func routersInSilence(t *testing.T, toml string, workers int, open func(first *running)) (first, second *running, redis *redistest.Server) {
	redis = redistest.Start(t)
	toml = fmt.Sprintf("[cache]\nredis = %q\n[history]\nredis = \"off\"\n", redis.URL()) + toml
	first, second = start(t, toml, workers), start(t, toml, workers)
	open(first)
	for _, r := range []*running{first, second} {
		eventually(t, "Redis has heard everything", func() bool { return r.tier.Stats().L2.Owing == 0 })
	}
	redis.Signal(syscall.SIGSTOP)
	return first, second, redis
}

// What is opened by id is refused in a silence with what makes clients come again, on every path, by a router that
// does not hold it.
func TestIDsInASilence(t *testing.T) {
	t.Parallel()
	var aws, plain, answer string
	worker := func() string {
		return fakeWorker(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, `{"id":"resp_1","object":"response","status":"completed","model":"sim","output":[]}`)
		}).URL
	}
	var toml strings.Builder
	toml.WriteString("[server]\nlisten = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\n")
	addPool(&toml, "other", "roundrobin", "other", worker())
	addPool(&toml, "main", "roundrobin", "sim", worker())
	first, second, redis := routersInSilence(t, toml.String(), 2, func(first *running) {
		aws, _ = first.opens(invoke, hello, sessionID, "NEW_SESSION")
		var made sessionapi.Session
		_ = json.Unmarshal([]byte(first.do("POST", "/sessions", `{"model":"sim"}`).body), &made)
		plain = made.ID
		if s := first.do("POST", "/v1/responses", `{"model":"sim","input":"x"}`); s.status != 200 {
			t.Fatalf("%d %s", s.status, s.body)
		}
		answer = "resp_1"
	})
	for i := range 2 { // before the breaker is open, and then
		f := func(what, method, path, body string, header ...string) {
			t.Helper()
			if s := second.do(method, path, body, header...); s.status != 503 || s.header.Get("Retry-After") == "" || !strings.Contains(s.body, "does not answer") {
				t.Errorf("%s, time %d: %d %v %s", what, i+1, s.status, s.header, s.body)
			}
		}
		f("SageMaker", "POST", invoke, hello, sessionID, aws)
		f("SageMaker, a guess", "POST", invoke, hello, sessionID, "guessed")
		f("SageMaker's stream", "POST", "/endpoints/main/invocations-response-stream", hello, sessionID, aws)
		f("close", "POST", invoke, closeBody, sessionID, aws)
		f("/invocations", "POST", "/invocations", hello, sessionID, aws)
		f("X-Session-Id", "POST", "/v1/completions", hello, "X-Session-Id", plain)
		f("GET /sessions", "GET", "/sessions/"+plain, "")
		f("DELETE /sessions", "DELETE", "/sessions/"+plain, "")
		f("previous_response_id", "POST", "/v1/responses", `{"model":"sim","input":"x","previous_response_id":"`+answer+`"}`)
		f("GET of a response", "GET", "/v1/responses/"+answer, "")
		second.do("POST", invoke, hello, sessionID, aws).refusal(t, "its shape", 503, "ServiceUnavailable", "does not answer")
		for _, use := range []seen{first.do("POST", invoke, hello, sessionID, aws), first.do("POST", "/v1/completions", hello, "X-Session-Id", plain),
			first.do("GET", "/sessions/"+plain, ""), first.do("GET", "/v1/responses/"+answer, "")} {
			if use.status != 200 {
				t.Errorf("the router that holds it, time %d: %d %s", i+1, use.status, use.body)
			}
		}
		eventually(t, "both have found out", func() bool { return first.tier.Stats().L2.Open && second.tier.Stats().L2.Open })
	}
	if s := first.do("POST", invoke, closeBody, sessionID, aws); s.status != 200 || s.header.Get(closedID) != aws {
		t.Errorf("close in the silence: %d %s", s.status, s.body)
	}
	metrics := do(t, "GET", "http://"+second.AdminAddr()+"/metrics", "").body
	if !strings.Contains(metrics, `reason="store_silent"`) {
		t.Error("the refusals are not counted")
	}
	redis.Signal(syscall.SIGCONT)
	eventually(t, "the second router serves the other one", func() bool { return second.do("POST", "/v1/completions", hello, "X-Session-Id", plain).status == 200 })
	eventually(t, "the end that was told in the silence is one at the second router", func() bool {
		s := second.do("POST", invoke, hello, sessionID, aws)
		if s.status == 200 {
			return false
		}
		return s.status == 400 && strings.Contains(s.body, "closed")
	})
}

// Keys are served in a silence, by whichever name they come, and every router chooses alike; also when a worker goes.
func TestKeysInASilence(t *testing.T) {
	t.Parallel()
	for _, strategy := range []string{"session", "roundrobin"} {
		t.Run(strategy, func(t *testing.T) { keysInASilence(t, strategy) })
	}
}

func keysInASilence(t *testing.T, strategy string) {
	dying := fakeWorker(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Worker", "w5")
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"object":"text_completion","choices":[{"index":0,"text":"x","finish_reason":"stop"}]}`)
	})
	toml := bindAlways + "cookie = \"wp\"\n" + settings(strategy, append(echoes(t, 4), dying.URL)...)
	first, second, redis := routersInSilence(t, toml, 5, func(*running) {})
	eventually(t, "both have found out", func() bool { return first.tier.Stats().L2.Open && second.tier.Stats().L2.Open })
	type key struct{ header, value, body string }
	homes, used := map[key]string{}, map[string]int{}
	at := func(r *running, k key) string {
		t.Helper()
		header := []string{"X-Warmpath-Explain", "1"}
		if k.header != "" {
			header = append(header, k.header, k.value)
		}
		s := r.do("POST", "/v1/completions", k.body, header...)
		if s.status != 200 {
			t.Fatalf("%v: %d %s", k, s.status, s.body)
		}
		return s.header.Get("Worker")
	}
	at(second, key{body: hello}) // its turns are not the first one's
	for i := range 60 {
		keys := []key{{"X-Session-Id", fmt.Sprint("k", i), hello}, {"Cookie", "wp=" + session.MintID(), hello}}
		if strategy == "session" { // the strategies that bind take a field of the body for a key
			keys = append(keys, key{"", "", fmt.Sprintf(`{"model":"sim","prompt":"x","user":"u%d"}`, i)})
		}
		for _, k := range keys {
			homes[k] = at(first, k)
			if used[homes[k]]++; at(second, k) != homes[k] {
				t.Errorf("%v: at %s and at %s", k, homes[k], at(second, k))
			}
		}
	}
	for i := range 5 {
		if n := used[fmt.Sprint("w", i+1)]; n < len(homes)/15 { // a fifth is its share; below a fifteenth in one of 10,000 runs
			t.Errorf("w%d has %d of %d keys", i+1, n, len(homes))
		}
	}
	s := first.do("POST", "/v1/completions", hello)
	minted := strings.TrimPrefix(strings.Split(s.header.Get("Set-Cookie"), ";")[0], "wp=")
	homes[key{"Cookie", "wp=" + minted, hello}] = s.header.Get("Worker")
	dying.CloseClientConnections()
	dying.Close()
	first.waitUp(4)
	second.waitUp(4)
	check := func(what string) {
		t.Helper()
		for k, home := range homes {
			a, b := at(first, k), at(second, k)
			if a != b || home != "w5" && a != home {
				t.Errorf("%s: %v is at %s and at %s; it was at %s", what, k, a, b, home)
			}
			homes[k] = a
		}
	}
	check("a worker is gone")
	redis.Signal(syscall.SIGCONT)
	for _, r := range []*running{first, second} {
		eventually(t, "all is told", func() bool { st := r.tier.Stats().L2; return !st.Open && st.Owing == 0 })
	}
	check("Redis is back")
}

// A flushed Redis takes no session away, and no router says so.
func TestAFlushOfRedisTakesNoSession(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	toml := fmt.Sprintf("[cache]\nredis = %q\n", redis.URL()) + bindAlways + settings("roundrobin", echoes(t, 4)...)
	l := &trackedSessions{t: t, routers: [2]*running{start(t, toml, 4), start(t, toml, 4)}, workers: []string{"w1", "w2", "w3", "w4"}}
	l.open(200, 100, 100)
	l.settled()
	redis.Do("FLUSHALL")
	l.silence.Store(true)
	l.each(l.all, func(s *trackedSession) {
		s.cold = true // for the second router all are
		l.ask(l.routers[1], s)
		l.ask(l.routers[0], s)
	})
	t.Logf("%d aside, %d refused", l.aside.Load(), l.refused.Load())
	l.settled()
	l.silence.Store(false)
	l.homesHold(l.all)
}
