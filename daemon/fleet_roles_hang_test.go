package daemon

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/vllmsim"
)

// hang is a way in which a prefiller hangs, from some moment on.
type hang struct {
	name  string
	stuck atomic.Bool
	sides []net.Conn // of frozen
	mu    sync.Mutex // guards sides
	url   func(t *testing.T, h *hang, to string) string
}

// onPrompts is a front that answers all but prompts: an engine that hangs behind its API server.
func onPrompts(t *testing.T, h *hang, to string) string {
	u, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(u)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost && h.stuck.Load() {
			_, _ = io.Copy(io.Discard, r.Body)
			select {
			case <-r.Context().Done():
			case <-t.Context().Done():
			}
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// frozen is a front that goes on to accept connections, and passes no byte any more: a process that was stopped.
func frozen(t *testing.T, h *hang, to string) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		l.Close()
		h.mu.Lock()
		defer h.mu.Unlock()
		for _, c := range h.sides {
			c.Close()
		}
	})
	pass := func(to, from net.Conn) {
		defer to.Close()
		page := make([]byte, 1<<16)
		for {
			n, err := from.Read(page)
			if h.stuck.Load() {
				<-t.Context().Done()
				return
			}
			if n > 0 {
				_, _ = to.Write(page[:n])
			}
			if err != nil {
				return
			}
		}
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			w, err := net.Dial("tcp", strings.TrimPrefix(to, "http://"))
			if err != nil {
				c.Close()
				continue
			}
			h.mu.Lock()
			h.sides = append(h.sides, c, w)
			h.mu.Unlock()
			go pass(w, c)
			go pass(c, w)
		}
	}()
	return "http://" + l.Addr().String()
}

// TestAPrefillerHangsUnderLoad: the only prefiller hangs while 20 clients ask. Each has an answer soon, also those whose
// prompts are there, the decoder stays up, and the log of accesses and the list of workers name the prefiller.
func TestAPrefillerHangsUnderLoad(t *testing.T) {
	t.Parallel()
	for _, connector := range []string{"nixl", "lmcache"} {
		for name, url := range map[string]func(*testing.T, *hang, string) string{"prompts": onPrompts, "frozen": frozen} {
			t.Run(connector+" "+name, func(t *testing.T) {
				t.Parallel()
				for try := 1; ; try++ { // other tests may take the processor meanwhile
					usual, slowest := hangsUnderLoad(t, connector, &hang{name: name, url: url})
					t.Logf("at first %v at most, later %v", usual, slowest)
					if slowest <= 2*max(usual, time.Second) {
						return
					}
					if try == 3 {
						t.Fatalf("a client has waited %v, and %v before the prefiller hung", slowest, usual)
					}
				}
			})
		}
	}
}

// hangsUnderLoad returns the longest that a client waits before the prefiller hangs, and from then on.
func hangsUnderLoad(t *testing.T, connector string, h *hang) (usual, slowest time.Duration) {
	log := filepath.Join(t.TempDir(), "access.log")
	o := rolesOptions{server: fmt.Sprintf("access_log = %q", log),
		beforePrefiller: func(w *vllmsim.Server) string { return h.url(t, h, w.URL()) }}
	if connector != "nixl" {
		o.connector, o.sim.Shared = connector, vllmsim.NewTier(1<<20, vllmsim.Config{})
	}
	f := startRolesWith(t, 1, 1, o)
	var all sync.WaitGroup
	var mu sync.Mutex
	end := time.Now().Add(4 * time.Second)
	for c := range 20 {
		all.Go(func() {
			for i := 0; time.Now().Before(end); i++ {
				began, stuck := time.Now(), h.stuck.Load()
				if err := f.ask(t.Context(), fmt.Sprint(c, " ", i, " ", h.name), 1500, i%2 == 0); err != nil {
					t.Error(err)
				}
				took := time.Since(began)
				mu.Lock()
				if stuck || h.stuck.Load() {
					slowest = max(slowest, took)
				} else {
					usual = max(usual, took)
				}
				mu.Unlock()
			}
		})
	}
	time.Sleep(1500 * time.Millisecond)
	h.stuck.Store(true)
	all.Wait()
	for _, w := range f.describe()[0].Workers {
		if w.ID == "w2" && (w.State != "up" || w.Why != "") {
			t.Errorf("the decoder is %s (%s)", w.State, w.Why)
		}
		if w.ID == "w1" && w.State == "up" {
			t.Errorf("the prefiller is %s (%s)", w.State, w.Why)
		}
	}
	if n := f.metric("warmpath_worker_ejections_total", `worker="w2"`); n != 0 {
		t.Errorf("the decoder was ejected %v times", n)
	}
	eventually(t, "the access log names the prefiller", func() bool {
		text, _ := os.ReadFile(log)
		return bytes.Contains(text, []byte(`"prefill_why":"w1: timeout"`))
	})
	return usual, slowest
}
