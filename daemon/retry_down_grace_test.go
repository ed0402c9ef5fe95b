package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/vllmsim"
)

// leaver is a worker that shuts down as uvicorn does: leave closes its port and its idle connections at once, and
// keeps the busy ones, on which it is silent unless a request asked for more.
type leaver struct {
	*httptest.Server
	gone chan struct{} // closed by leave
	got  chan string   // what requests asked for, as they come
}

func newLeaver(t *testing.T) *leaver {
	l := &leaver{gone: make(chan struct{}), got: make(chan string, 64)}
	l.Server = fakeWorker(t, func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		how := r.Header.Get("X-How")
		const role = "data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n"
		const token = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}]}\n\n"
		say := func(text string) { io.WriteString(rw, text); rw.(http.Flusher).Flush() }
		if strings.Contains(string(body), `"stream":true`) {
			rw.Header().Set("Content-Type", "text/event-stream")
			say("")
		}
		switch how {
		case "role":
			say(role)
		case "begun", "goes on":
			say(role + token)
		}
		l.got <- how
		<-l.gone
		if how == "goes on" { // it drains: it takes nothing new, and ends what it has
			for range 12 {
				time.Sleep(250 * time.Millisecond)
				say(token)
			}
			say("data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
			return
		}
		<-r.Context().Done()
	})
	return l
}

// leave closes the port. It returns when that is done.
func (l *leaver) leave(t *testing.T) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	t.Cleanup(stop)
	go l.Config.Shutdown(ctx)
	eventually(t, "the port closed", func() bool {
		c, err := testClient.Get(l.URL + "/health")
		if err == nil {
			c.Body.Close()
		}
		return err != nil
	})
	close(l.gone)
}

// fromDefaults is the default configuration with a pool of these workers and one more line.
func fromDefaults(line string, urls ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "[server]\nlisten = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\n[[pools]]\nname = \"main\"\nstrategy = \"roundrobin\"\n%s\n", line)
	for i, u := range urls {
		fmt.Fprintf(&b, "[[pools.workers]]\nurl = %q\nid = \"w%d\"\n", u, i+1)
	}
	return b.String()
}

// TestNobodyWaitsAtADeadWorker: a worker closes its port and keeps the connections of its requests, silent. Requests
// without output go elsewhere once down_grace is over, a begun stream is told, and one that still gets its tokens is
// left alone.
func TestNobodyWaitsAtADeadWorker(t *testing.T) {
	t.Parallel()
	for _, strategyLine := range []string{"", `first_byte_retry = "5m"`} { // with a context of the attempt's own too
		l := newLeaver(t)
		good := sims(t, 1, vllmsim.Config{})
		r := start(t, fromDefaults(strategyLine+"\ndown_grace = \"1s\"", l.URL, good[0].URL()), 2)
		type end struct {
			how string
			seen
		}
		ends := make(chan end, 8)
		send := func(how string, stream bool) { // until one of them is at the worker that leaves
			body := fmt.Sprintf(`{"model":"sim","messages":[{"role":"user","content":"x"}],"max_tokens":3,"stream":%v}`, stream)
			for range 10 {
				done := make(chan seen, 1)
				go func() { done <- r.do("POST", "/v1/chat/completions", body, "X-How", how, "X-Warmpath-Explain", "1") }()
				select {
				case <-l.got:
					go func() { ends <- end{how, <-done} }()
					return
				case s := <-done:
					if s.status != 200 || s.err != nil {
						t.Fatalf("%s at the good worker: %d %v %s", how, s.status, s.err, s.body)
					}
				}
			}
			t.Fatalf("%s never came to the worker", how)
		}
		send("plain", false)
		send("head", true)
		send("role", true)
		send("begun", true)
		send("goes on", true)
		l.leave(t)
		left := time.Now()
		for range 5 {
			e := <-ends
			took := time.Since(left)
			if took < time.Second && e.how != "goes on" {
				t.Errorf("%s ended %v after the port closed; want at least down_grace", e.how, took)
			}
			t.Logf("%s ended %v after the port closed: %d, retries %q, %v", e.how, took, e.status, e.header.Get("X-Warmpath-Retries"), e.err)
			switch e.how {
			case "begun":
				if !errors.Is(e.err, io.ErrUnexpectedEOF) || !strings.Contains(e.body, `"content":"a"`) || !strings.Contains(e.body, `"code":"worker_down"`) {
					t.Errorf("a begun stream: %v %q; want its token, worker_down and a broken end", e.err, e.body)
				}
			case "goes on":
				if e.err != nil || strings.Count(e.body, `"content":"a"`) != 13 || !strings.HasSuffix(e.body, "[DONE]\n\n") {
					t.Errorf("a stream that goes on: %v %q; want it whole", e.err, e.body)
				}
			default:
				if e.status != 200 || e.err != nil || e.header.Get("X-Warmpath-Retries") != "1" || e.header.Get("X-Warmpath-Worker") != "w2" {
					t.Errorf("%s: %d %v, retries %q at %q: %s", e.how, e.status, e.err, e.header.Get("X-Warmpath-Retries"), e.header.Get("X-Warmpath-Worker"), e.body)
				}
			}
		}
		eventually(t, "nothing in flight", func() bool { return r.inFlight() == 0 && r.front.Stats().InFlight == 0 })
	}
}

// TestSessionStaysWithItsDeadWorker: a request of an opened session goes to nobody else, and is told.
func TestSessionStaysWithItsDeadWorker(t *testing.T) {
	t.Parallel()
	l := newLeaver(t)
	const policy = "[sessions]\non_worker_down = \"error\"\n"
	r := start(t, policy+fromDefaults(`down_grace = "1s"`, l.URL), 1)
	opened := r.do("POST", "/sessions", `{"model":"sim"}`)
	id, _, _ := strings.Cut(strings.TrimPrefix(opened.body, `{"id":"`), `"`)
	if opened.status != 201 || len(id) != 26 {
		t.Fatalf("opening: %d %s", opened.status, opened.body)
	}
	good := sims(t, 1, vllmsim.Config{})
	write(t, r.file, policy+fromDefaults(`down_grace = "1s"`, l.URL, good[0].URL()))
	if err := r.Reload(); err != nil {
		t.Fatal(err)
	}
	r.waitUp(2)
	done := make(chan seen, 1)
	go func() {
		done <- r.do("POST", "/v1/completions", `{"model":"sim","prompt":"x"}`, "X-Session-Id", id)
	}()
	<-l.got
	l.leave(t)
	if s := <-done; s.status != 503 || !strings.Contains(s.body, "worker_down") || s.header.Get("Retry-After") == "" {
		t.Errorf("in flight: %d %s; want 503 worker_down", s.status, s.body)
	}
	if s := r.do("POST", "/v1/completions", `{"model":"sim","prompt":"x"}`, "X-Session-Id", id); s.status != 400 || !strings.Contains(s.body, "session_lost") {
		t.Errorf("after it: %d %s; want 400 session_lost", s.status, s.body)
	}
}

// TestRemovedWorkerIsWatchedToItsLastRequest: a worker is taken from the configuration, as a name does that is about
// to end a process, and then hangs.
func TestRemovedWorkerIsWatchedToItsLastRequest(t *testing.T) {
	t.Parallel()
	l := newLeaver(t)
	good := sims(t, 1, vllmsim.Config{})
	r := start(t, fromDefaults(`down_grace = "1s"`, l.URL), 1)
	done := make(chan seen, 1)
	go func() { done <- r.do("POST", "/v1/completions", `{"model":"sim","prompt":"x","max_tokens":2}`) }()
	<-l.got
	write(t, r.file, fromDefaults(`down_grace = "1s"`, good[0].URL()))
	if err := r.Reload(); err != nil {
		t.Fatal(err)
	}
	r.waitUp(1)
	l.leave(t)
	if s := <-done; s.status != 200 || s.err != nil {
		t.Errorf("%d %v %s; want the other worker's answer", s.status, s.err, s.body)
	}
}

// TestStreamedBodyIsNotRepeated: what was passed on as it came cannot be sent again: the client is told in time.
func TestStreamedBodyIsNotRepeated(t *testing.T) {
	t.Parallel()
	l := newLeaver(t)
	good := sims(t, 1, vllmsim.Config{})
	toml := withServer(fromDefaults(`down_grace = "1s"`, l.URL, good[0].URL()), "buffer_body_bytes = 65536")
	r := start(t, toml, 2)
	body := fmt.Sprintf(`{"model":"sim","prompt":%q,"max_tokens":2}`, strings.Repeat("x ", 100_000))
	for range 10 {
		done := make(chan seen, 1)
		go func() { done <- r.do("POST", "/v1/completions", body) }()
		select {
		case <-done:
			continue
		case <-l.got:
		}
		l.leave(t)
		if s := <-done; s.status != 503 || !strings.Contains(s.body, "worker_down") {
			t.Errorf("%d %.200s; want 503 worker_down", s.status, s.body)
		}
		return
	}
	t.Fatal("never came to the worker")
}

// TestClosedPortIsSeen: a proxy before a worker goes on answering /health on the connections that it has, with its
// port closed.
func TestClosedPortIsSeen(t *testing.T) {
	t.Parallel()
	w := fakeWorker(t, func(http.ResponseWriter, *http.Request) {})
	good := sims(t, 1, vllmsim.Config{})
	r := start(t, fromDefaults("", w.URL, good[0].URL()), 2)
	w.Listener.Close()
	closed := time.Now()
	eventually(t, "the worker down", func() bool { return r.describe()[0].Workers[0].State == "down" })
	t.Logf("down %v after the port closed", time.Since(closed))
}
