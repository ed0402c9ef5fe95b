package daemon

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/vllmsim"
)

// TestRolesLearnTransfer: a pool that is told no kv_transfer_rate asks prefillers by the threshold until it has learnt
// one, and then not where the KV would take longer than the prompt. A prefiller that is down is counted all the same.
func TestRolesLearnTransfer(t *testing.T) {
	t.Parallel()
	const rate = 5000 // of the simulated network, a second: 1,500 tokens take .3 s, and their prefill a tenth of it at most
	f := startRolesWith(t, 1, 1, rolesOptions{rule: "sooner", sim: vllmsim.Config{KVRate: rate / 20.}})
	learnt := func() float64 { return f.metric("warmpath_prefill_transfer_tokens_per_second", `pool="main"`) }
	if n := learnt(); n != 0 {
		t.Errorf("%v tokens a second before any", n)
	}
	asked := 0
	for ; learnt() == 0 && asked < 20; asked++ {
		if err := f.ask(t.Context(), fmt.Sprint("long ", asked), 1500, true); err != nil {
			t.Fatal(err)
		}
	}
	if n := learnt(); n < rate/20 || n > rate*1.1 { // a busy machine makes it slower, nothing makes it faster
		t.Errorf("%v tokens a second after %d; want %d or what a busy machine makes of it", n, asked, rate)
	}
	if n := f.prefill[0].Stats().Finished; int(n) != asked {
		t.Errorf("%d prefills of %d prompts while nothing is known", n, asked)
	}
	for i := range 3 {
		if err := f.ask(t.Context(), fmt.Sprint("more ", i), 1500, true); err != nil {
			t.Fatal(err)
		}
	}
	if n := f.prefill[0].Stats().Finished; int(n) != asked {
		t.Errorf("%d prefills more over a slow network", int(n)-asked)
	}
	_ = f.prefill[0].Close()
	none := func() float64 { return f.metric("warmpath_prefills_total", `result="no_prefiller"`) }
	for end := time.Now().Add(20 * time.Second); none() == 0 && time.Now().Before(end); asked++ {
		if err := f.ask(t.Context(), fmt.Sprint("late ", asked), 1500, false); err != nil {
			t.Fatal(err)
		}
	}
	if none() == 0 {
		t.Error("no_prefiller is never counted while none is up")
	}
}

// TestRolesLost: a prefiller that restarts on its port between the legs has lost the KV. The decoder's 500, or the error
// in its stream, does not reach the client, and the only decoder stays up.
func TestRolesLost(t *testing.T) {
	t.Parallel()
	var f *rolesFleet
	var restarts atomic.Int32
	f = startRolesWith(t, 1, 1, rolesOptions{before: func(w *vllmsim.Server) string {
		to, err := url.Parse(w.URL())
		if err != nil {
			t.Fatal(err)
		}
		proxy := httputil.NewSingleHostReverseProxy(to)
		proxy.FlushInterval = -1
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				return
			}
			if bytes.Contains(body, []byte(`"do_remote_prefill":true`)) && !bytes.Contains(body, []byte(`"max_tokens":1`)) { // not one that only frees
				restarts.Add(1)
				if err := f.prefill[0].Restart(); err != nil {
					t.Error(err)
				}
			}
			r.Body = io.NopCloser(bytes.NewReader(body))
			proxy.ServeHTTP(w, r)
		}))
		t.Cleanup(s.Close)
		return s.URL
	}})
	for i := range 6 {
		for end := time.Now().Add(20 * time.Second); f.up() < 2 && time.Now().Before(end); {
			time.Sleep(10 * time.Millisecond)
		}
		if err := f.ask(t.Context(), fmt.Sprint("long ", i), 1500, i%2 == 0); err != nil {
			t.Errorf("stream %v: %v", i%2 == 0, err)
		}
	}
	lost := f.metric("warmpath_prefills_total", `result="lost"`)
	if n := restarts.Load(); n < 3 || lost != float64(n) {
		t.Errorf("%v prefills lost of %d restarts; want all, and 3 or more", lost, n)
	}
	if n := f.metric("warmpath_worker_breaker_state", `worker="w2"`); n != 0 {
		t.Errorf("the decoder's breaker is in state %v", n)
	}
}

// up returns how many workers are up.
func (f *rolesFleet) up() (n int) {
	for _, w := range f.describe()[0].Workers {
		if w.State == "up" {
			n++
		}
	}
	return n
}

// TestRolesStrandNothing: clients that leave in any phase of any form of request leave nothing at a prefiller. With
// lmcache the decoder finds the prompt in the cache that all share.
func TestRolesStrandNothing(t *testing.T) {
	t.Parallel()
	for _, connector := range []string{"", "lmcache"} {
		o := rolesOptions{connector: connector}
		if connector != "" {
			o.sim.Shared = vllmsim.NewTier(1<<20, vllmsim.Config{})
		}
		f := startRolesWith(t, 1, 1, o)
		var all sync.WaitGroup
		var served, left atomic.Int32
		for c := range roleForms {
			all.Go(func() {
				r := rand.New(rand.NewPCG(uint64(c), 7))
				for i := range 40 {
					ctx, leave := context.WithCancel(t.Context())
					if i%2 == 0 {
						time.AfterFunc(time.Duration(r.IntN(60_000))*time.Microsecond, leave)
					}
					_, err := f.say(ctx, &roleForms[c], longText(fmt.Sprint(c, " ", i), 800+r.IntN(1000)), i%4 < 2)
					switch {
					case err == nil:
						served.Add(1)
					case ctx.Err() == nil:
						t.Errorf("%q, %s: %v", connector, roleForms[c].path, err)
					default:
						left.Add(1)
					}
					leave()
				}
			})
		}
		all.Wait()
		if served.Load() < 80 || left.Load() < 10 {
			t.Errorf("%q: %d served, %d left", connector, served.Load(), left.Load())
		}
		for end := time.Now().Add(30 * time.Second); f.pinned() > 0 && time.Now().Before(end); {
			time.Sleep(10 * time.Millisecond)
		}
		if n, said := f.pinned(), f.metric("warmpath_prefills_total", `result="pinned"`); n > 0 || said > 0 {
			t.Errorf("%q: %d blocks are pinned or stranded, %v by the router's word", connector, n, said)
		}
		if connector != "" {
			st := f.decode[0].Stats()
			t.Logf("the decoder computed %d tokens and found %d in the cache of all", st.ComputedTokens, st.SharedTokens)
			if st.SharedTokens < 10*st.ComputedTokens {
				t.Errorf("the decoder computed %d tokens and found %d in the cache of all", st.ComputedTokens, st.SharedTokens)
			}
		}
	}
}
