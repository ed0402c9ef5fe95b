package daemon

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/admin/operator"
	"github.com/warmpath/warmpath/daemon/lab/vllmsim"
)

// syncedFleet is a router before simulated workers that a trainer gives new weights.
type syncedFleet struct {
	*running
	fleet vllmsim.Fleet
}

func newSyncedFleet(t *testing.T, workers int) *syncedFleet {
	token := filepath.Join(t.TempDir(), "token")
	write(t, token, adminToken)
	fleet := sims(t, workers, vllmsim.Config{DevMode: true})
	toml := withServer(settings("prefixaware", fleet.URLs()...), fmt.Sprintf("admin_token_file = %q", token))
	return &syncedFleet{start(t, withPool(toml, "slow_start = \"0s\"\ncontinue = 2"), workers), fleet}
}

// each sends calls to all workers, and fails unless they obey.
func (r *syncedFleet) each(more, body string, paths ...string) (o operator.Ordered) {
	r.t.Helper()
	q := url.Values{"path": paths}
	s := r.admin("POST", "/api/v1/pools/main/each?"+q.Encode()+more, body)
	if err := json.Unmarshal([]byte(s.body), &o); err != nil || s.status != 200 {
		r.t.Fatalf("%v: %d %s", paths, s.status, s.body)
	}
	return o
}

// call sends a call to all workers, through the router or directly.
func (r *syncedFleet) call(path string, direct bool) {
	r.t.Helper()
	if !direct {
		r.each("", "", path)
		return
	}
	var all sync.WaitGroup
	for _, u := range r.fleet.URLs() {
		all.Go(func() {
			if s := do(r.t, "POST", u+path, ""); s.status != 200 {
				r.t.Errorf("%s: %d %s", path, s.status, s.body)
			}
		})
	}
	all.Wait()
}

// blocks returns how many blocks the router believes a worker to hold.
func (r *syncedFleet) blocks(worker int) int {
	for _, w := range r.shown()[0].Workers.Stats(time.Now()) {
		if w.URL == r.fleet.URLs()[worker] {
			return r.shown()[0].Index.Worker(w.Slot).Blocks
		}
	}
	return -1
}

func (r *syncedFleet) states() (list string) {
	for _, w := range r.describe()[0].Workers {
		list += w.State + " "
	}
	return strings.TrimSpace(list)
}

var samePrompt = `{"model":"sim","prompt":"` + strings.Repeat("the same text ", 200) + `","max_tokens":%d,"ignore_eos":true,"stream":%v}`

// TestNewWeightsPartByPart: a worker at a time is paused, gets its weights and goes on, while the others serve. Which
// calls a worker has got is in the answer.
func TestNewWeightsPartByPart(t *testing.T) {
	t.Parallel()
	r := newSyncedFleet(t, 4)
	stop, done := make(chan bool), make(chan int)
	go func() {
		most := 0
		for {
			select {
			case <-stop:
				done <- most
				return
			case <-time.After(2 * time.Millisecond):
				most = max(most, strings.Count(r.states(), "paused"))
			}
		}
	}()
	var clients sync.WaitGroup
	for range 4 {
		clients.Go(func() {
			for range 10 {
				if s := r.do("POST", "/v1/completions", fmt.Sprintf(samePrompt, 20, true)); s.status != 200 || !strings.Contains(s.body, `"length"`) {
					t.Errorf("%d %s", s.status, s.body)
				}
			}
		})
	}
	o := r.each("&at_most_down=0.25", `{"update_info":{"seconds":2},"weight_version":"7"}`, "/pause?mode=keep", "/update_weights",
		"/finish_weight_update", "/resume")
	clients.Wait()
	close(stop)
	if most := <-done; most != 1 {
		t.Errorf("%d workers were paused at a time", most)
	}
	for i, w := range o.Workers {
		if w.Path != "/resume" || w.Seconds < .1 || r.fleet[i].Stats().WeightVersion != "7" {
			t.Errorf("%+v", w)
		}
	}
	if o.Path != "/pause?mode=keep /update_weights /finish_weight_update /resume" {
		t.Error(o.Path)
	}
	s := r.admin("POST", "/api/v1/pools/main/each?parallel=2&path=/pause&path=/update_weights&path=/resume", `{}`)
	if json.Unmarshal([]byte(s.body), &o) != nil || s.status != 502 || o.Workers[3].Path != "/update_weights" || o.Workers[3].Status != 400 ||
		r.states() != "paused paused paused paused" {
		t.Errorf("a call that is refused: %d %s; %s", s.status, s.body, r.states())
	}
}

// TestWhatAPauseHolds: in each mode a stream that is open, and a request that comes meanwhile, end whole at a client, and
// belief stays where the cache does. It does not matter who sends the calls.
func TestWhatAPauseHolds(t *testing.T) {
	t.Parallel()
	f := func(mode string, keeps, direct bool) {
		t.Helper()
		r := newSyncedFleet(t, 2)
		r.do("POST", "/v1/completions", fmt.Sprintf(samePrompt, 1, false))
		var clients sync.WaitGroup
		ask := func(tokens int) {
			clients.Go(func() {
				s := r.do("POST", "/v1/completions", fmt.Sprintf(samePrompt, tokens, true))
				if s.status != 200 || s.err != nil || !strings.Contains(s.body, `"finish_reason":"length"`) {
					t.Errorf("%s, direct %v: a stream ended with %d %v %s", mode, direct, s.status, s.err, s.body[max(0, len(s.body)-300):])
				}
			})
		}
		ask(1000)
		at := -1
		eventually(t, "the stream has begun", func() bool {
			at = slices.IndexFunc(r.fleet, func(w *vllmsim.Server) bool { return w.Stats().Generated > 2 })
			return at >= 0
		})
		r.call("/pause?mode="+mode, direct)
		if mode == "wait" {
			clients.Wait()
		}
		time.Sleep(200 * time.Millisecond) // its end may be read after the worker was emptied
		// a stream that was ended twice may wait at its first worker, which will have its prompt
		back := mode == "abort" && r.describe()[0].Workers[at].InFlight > 0
		if got := r.blocks(at) > 0; !direct && !back && got != keeps {
			t.Errorf("%s: blocks are believed in: %v", mode, got)
		}
		ask(1)
		if !direct && r.states() != "paused paused" {
			t.Errorf("%s: %s", mode, r.states())
		}
		if direct {
			eventually(t, mode+": the pause is seen", func() bool { return strings.Contains(r.states(), "paused") })
		}
		time.Sleep(500 * time.Millisecond)
		r.call("/resume", direct)
		clients.Wait()
		eventually(t, "all are up", func() bool { return r.states() == "up up" })
		for _, w := range r.describe()[0].Workers {
			if w.Breaker != "closed" || w.TPOT > .1 {
				t.Errorf("%s, direct %v: the pause has taught something: %+v", mode, direct, w)
			}
		}
	}
	for _, direct := range []bool{false, true} {
		f("keep&clear_cache=false", true, direct)
		f("keep", false, direct)
		f("wait", false, direct)
		f("abort", false, direct)
	}
}

// TestWhatAPauseHoldsAgain: pauses of mode abort do not use up the times that another worker goes on with a stream,
// whoever sends them.
func TestWhatAPauseHoldsAgain(t *testing.T) {
	t.Parallel()
	for _, direct := range []bool{false, true} {
		r := newSyncedFleet(t, 2) // continue = 2
		done := make(chan bool)
		go func() {
			defer close(done)
			s := r.do("POST", "/v1/completions", fmt.Sprintf(samePrompt, 1000, true))
			if s.status != 200 || s.err != nil || !strings.Contains(s.body, `"finish_reason":"length"`) {
				t.Errorf("direct %v: the stream ended with %d %v %s", direct, s.status, s.err, s.body[max(0, len(s.body)-300):])
			}
		}()
		generated := func() int64 { return int64(r.fleet[0].Stats().Generated + r.fleet[1].Stats().Generated) }
		ended := func() bool {
			select {
			case <-done:
				return true
			default:
				return false
			}
		}
		pauses := 0
		for ; pauses < 5 && !ended(); pauses++ { // on a busy machine the stream ends before the last of them
			was := generated()
			eventually(t, "the stream goes on, or has ended", func() bool {
				return generated() > was+2 && r.states() == "up up" || ended()
			})
			r.call("/pause?mode=abort", direct)
			if direct { // else the router asks a worker that goes on already
				time.Sleep(500 * time.Millisecond)
			}
			r.call("/resume", direct)
		}
		<-done
		if pauses < 2 {
			t.Errorf("direct %v: %d pauses", direct, pauses)
		}
	}
}

// TestWorkersThatLeaveDuringAnOrder: a worker that is removed before its turn gets no call and counts for nothing. One that
// is removed between two calls gets the rest, so that what it has goes on.
func TestWorkersThatLeaveDuringAnOrder(t *testing.T) {
	t.Parallel()
	f := sims(t, 2, vllmsim.Config{DevMode: true})
	r := &syncedFleet{start(t, registers(t), 0), f}
	for i, u := range f.URLs() {
		r.order(200, "POST", registerPath, fmt.Sprintf(`{"url": %q, "id": "w%d"}`, u, i+1))
	}
	r.waitUp(2)
	done := make(chan operator.Ordered, 1)
	go func() {
		done <- r.each("&parallel=1", `{"update_info":{"seconds":20},"weight_version":"4"}`, "/pause?mode=keep", "/update_weights",
			"/finish_weight_update", "/resume")
	}()
	eventually(t, "the first is paused", func() bool { return r.states() == "paused up" })
	for _, id := range []string{"/w2", "/w1"} {
		r.order(200, "DELETE", registerPath+id, "")
	}
	if o := <-done; len(o.Workers) != 1 || o.Workers[0].Worker != "w1" || o.Workers[0].Path != "/resume" {
		t.Errorf("%+v", o)
	}
	if s := do(t, "GET", f.URLs()[0]+"/is_paused", ""); !strings.Contains(s.body, "false") {
		t.Errorf("the worker that was removed in its turn: %d %s", s.status, s.body)
	}
}

// TestAnOrderWhoseTimeIsOver: workers whose turn comes after its time get no call, and are not taken for paused.
func TestAnOrderWhoseTimeIsOver(t *testing.T) {
	t.Parallel()
	r := newSyncedFleet(t, 3)
	s := r.admin("POST", "/api/v1/pools/main/each?parallel=1&timeout=300ms&path=/pause&path=/update_weights", `{"update_info":{"seconds":60}}`)
	var o operator.Ordered
	if err := json.Unmarshal([]byte(s.body), &o); err != nil || s.status != 502 || !strings.Contains(o.Workers[2].Error, "it got no call") {
		t.Errorf("%d %v %s", s.status, err, s.body)
	}
	if got := r.states(); got != "paused up up" {
		t.Error(got)
	}
}

// TestAPauseLongerThanStreamTimeout: streams that a pause holds up stay open, whoever has sent it, and count for nothing
// against the worker.
func TestAPauseLongerThanStreamTimeout(t *testing.T) {
	t.Parallel()
	for _, direct := range []bool{false, true} {
		r := newSyncedFleet(t, 1)
		text, _ := os.ReadFile(r.file)
		r.reloadWith(strings.Replace(withPool(string(text), "stream_timeout = \"300ms\""), `scrape_interval = "100ms"`,
			`scrape_interval = "1s"`, 1)) // a busy machine may not send a page within 100 ms
		got, err := r.asks(continuable[0].body("What is the tide?", 2000), 1000, func() {
			r.call("/pause?mode=keep&clear_cache=false", direct)
			time.Sleep(1200 * time.Millisecond)
			r.call("/resume", direct)
		})
		if err != nil || !strings.HasSuffix(got, "data: [DONE]\n\n") {
			t.Errorf("direct %v: %v: %.300s", direct, err, got[max(0, len(got)-300):])
		}
		if w := r.describe()[0].Workers[0]; w.WhyOf() != "" {
			t.Errorf("direct %v: the worker is %s: %s", direct, w.State, w.WhyOf())
		}
	}
}
