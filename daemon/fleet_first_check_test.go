package daemon

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// lateWorker is a fakeWorker whose health checks take so long.
func lateWorker(t *testing.T, late time.Duration, serve http.HandlerFunc) *httptest.Server {
	t.Helper()
	inner := fakeWorker(t, serve)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/health" {
			select {
			case <-time.After(late):
			case <-r.Context().Done():
				return
			}
		}
		inner.Config.Handler.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

// answering answers every request with a status and a text.
func answering(status int, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, text)
	}
}

// After a start the worker whose first health check ends first is alone for a moment. A request that it refuses waits
// for the others, as far as they may take it, and no longer than that.
func TestALoneWorkersRefusal(t *testing.T) {
	t.Parallel()
	const no = `{"error":{"message":"not here","type":"NotFoundError","code":404}}`
	const moment, never = 300 * time.Millisecond, time.Minute
	const queue = "[pools.queue]\nmax_requests = 10\nwait_empty = \"30s\"\n"
	good, refuses := answering(200, completion), answering(404, no)
	for name, c := range map[string]struct {
		first, second http.HandlerFunc
		late          time.Duration // of the second worker's health checks
		pool, asked   string
		status        int
		text          string
	}{
		"404":               {refuses, good, moment, "", "sim", 200, "x"},
		"401":               {answering(401, no), good, moment, "", "sim", 200, "x"},
		"422":               {answering(422, no), good, moment, "", "sim", 200, "x"},
		"500":               {answering(500, no), good, moment, "", "sim", 200, "x"},
		"nothing":           {answering(200, ""), good, moment, "", "sim", 200, "x"},
		"a bad request":     {answering(422, no), answering(422, no), moment, "", "sim", 422, "not here"},
		"nobody comes":      {refuses, good, never, "", "sim", 404, "not here"},
		"nobody, a queue":   {refuses, good, never, queue, "sim", 404, "not here"},
		"a fallback":        {refuses, good, moment, "", "big", 200, "y"},
		"an answer at once": {good, good, never, "", "sim", 200, "x"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := settings("prefixaware", fakeWorker(t, c.first).URL, lateWorker(t, c.late, c.second).URL)
			text += c.pool
			if c.asked == "big" {
				small := strings.ReplaceAll(completion, `"text":"x"`, `"text":"y"`)
				text = strings.Replace(text, `models = ["*"]`, `models = ["sim"]`, 1)
				var b strings.Builder
				other := newSpeaker(t, `{"id":"other","object":"model"}`)
				addPool(&b, "small", "prefixaware", "other", other.url)
				other.says(200, "application/json", small)
				text += b.String() + "[[models]]\nname = \"big\"\nto = [{ model = \"sim\" }]\nfallback = \"other\"\n"
			}
			r := start(t, text, 0)
			eventually(t, "the first worker of each pool is up", func() bool {
				for _, p := range r.describe() {
					if p.Workers[0].State != "up" || p.Workers[0].Models == nil {
						return false
					}
				}
				return true
			})
			began := time.Now()
			s := r.do("POST", "/v1/completions", `{"model":"`+c.asked+`","prompt":"x"}`)
			if took := time.Since(began); s.status != c.status || !strings.Contains(s.body, c.text) || took > 20*time.Second {
				t.Errorf("%d %s after %v; want %d with %q", s.status, s.body, took, c.status, c.text)
			}
		})
	}
}

// A refused request of a key with workers of its own waits for none of another key's, and never goes there. It does wait
// for its own.
func TestALoneWorkersRefusalStaysInItsFence(t *testing.T) {
	t.Parallel()
	for of, want := range map[string]int{"alice": 200, "bob": 404} {
		t.Run(of, func(t *testing.T) {
			t.Parallel()
			var met atomic.Int64
			late := lateWorker(t, 300*time.Millisecond, func(w http.ResponseWriter, r *http.Request) {
				met.Add(1)
				answering(200, completion)(w, r)
			})
			refuses := fakeWorker(t, answering(404, `{"error":{"message":"not here","code":404}}`))
			file := filepath.Join(t.TempDir(), "alice")
			write(t, file, "alice-secret")
			text := fmt.Sprintf("[[keys]]\nname = \"alice\"\nfile = %q\nworkers = \"for=alice\"\n", file) +
				settings("prefixaware", refuses.URL, late.URL)
			for i, whose := range []string{"alice", of} {
				id := fmt.Sprintf("id = \"w%d\"\n", i+1)
				text = strings.Replace(text, id, id+fmt.Sprintf("labels = { for = %q }\n", whose), 1)
			}
			r := start(t, text, 0)
			eventually(t, "the first worker is up", func() bool { return r.describe()[0].Workers[0].State == "up" })
			s := r.as("alice", "POST", "/v1/completions", `{"model":"sim","prompt":"x"}`)
			if s.status != want || (met.Load() == 1) != (want == 200) {
				t.Errorf("%d %s, and %d requests at the late worker; want %d", s.status, s.body, met.Load(), want)
			}
		})
	}
}

// A reload puts a pool in another's place. The old one serves until all workers of the new one have been heard: the
// first that is up would get all requests.
func TestANewPoolIsWhole(t *testing.T) {
	t.Parallel()
	good := answering(200, completion)
	worker := fakeWorker(t, good).URL
	r := start(t, settings("prefixaware", worker), 1)
	text := strings.Replace(settings("prefixaware", worker, lateWorker(t, 500*time.Millisecond, good).URL), "main", "other", 1)
	write(t, r.file, text)
	if err := r.Reload(); err != nil {
		t.Fatal(err)
	}
	for _, w := range r.describe()[0].Workers {
		if w.State != "up" {
			t.Errorf("the new pool serves while %s is %q", w.ID, w.State)
		}
	}
}

// /ready is good once all workers have been heard, so that a load balancer sends no clients to a router that knows one
// worker of many. One that hangs holds it up for a moment only, and a worker that comes later not at all.
func TestReadyOnceAllAreHeard(t *testing.T) {
	t.Parallel()
	good := answering(200, completion)
	for name, c := range map[string]struct {
		late time.Duration
		want string
	}{
		"late":    {700 * time.Millisecond, "up up"},
		"hanging": {time.Minute, "up down"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := settings("prefixaware", fakeWorker(t, good).URL, lateWorker(t, c.late, good).URL)
			r := start(t, text, 0)
			states := func() string {
				var all []string
				for _, w := range r.describe()[0].Workers {
					all = append(all, w.State)
				}
				return strings.Join(all, " ")
			}
			eventually(t, "the first worker is up", func() bool { return strings.HasPrefix(states(), "up") })
			if status, page := r.ready(); status != 503 && states() != c.want {
				t.Errorf("%d %s with the workers %s", status, page, states())
			}
			eventually(t, "/ready is good", func() bool { status, _ := r.ready(); return status == 200 })
			if got := states(); got != c.want {
				t.Errorf("/ready is good with the workers %s; want %s", got, c.want)
			}
			eventually(t, "the pool is no new one", func() bool {
				return time.Since(r.state.Load().pools[0].route.Workers.Began()) > 4*time.Second
			})
			text += "[[pools.workers]]\nurl = \"" + lateWorker(t, time.Minute, good).URL + "\"\nid = \"more\"\n"
			write(t, r.file, text)
			reloaded := make(chan error, 1)
			go func() { reloaded <- r.Reload() }()
			eventually(t, "the new worker is there", func() bool { return len(r.describe()[0].Workers) == 3 })
			if status, page := r.ready(); status != 200 {
				t.Errorf("%d %s while a worker is new", status, page)
			}
			if err := <-reloaded; err != nil {
				t.Error(err)
			}
		})
	}
}
