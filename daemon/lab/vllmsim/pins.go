package vllmsim

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/vllmsim/engine"
)

// pins are the prompts whose blocks a prefill worker keeps for decode workers, by request. Their number is bounded by
// the KV cache.
type pins struct {
	engine string // id, another one after each restart
	life   time.Duration
	fixed  bool // nobody renews it

	mu       sync.Mutex // guards what follows
	open     map[string]*pin
	prompts  int64 // that nobody pulled in time
	stranded int64 // blocks of these
}

func newPins(cfg *Config) *pins {
	return &pins{engine: cfg.ID + "-" + newID(), life: cfg.PinLife, fixed: cfg.PinFixed, open: map[string]*pin{}}
}

// pin is one such prompt.
type pin struct {
	of     *pins
	driver *driver
	choice *choice
	params transferParams
	timer  *time.Timer // frees the blocks that nobody pulls
	until  time.Time   // when it does
}

// shown begins the wait for the decode worker once the prompt is computed, also where its client has left: vLLM does
// not learn of that any more.
func (p *pin) shown(c *choice) {
	if c.finish() != engine.FinishLength {
		return
	}
	o := p.of
	o.mu.Lock()
	defer o.mu.Unlock()
	o.open[p.params.RequestID] = p
	p.timer, p.until = time.AfterFunc(o.life, p.expire), time.Now().Add(o.life)
}

func (p *pin) answer(c *choice) *transferParams {
	if c.finish() != engine.FinishLength {
		return nil
	}
	params := p.params
	params.Blocks = [][]int{p.driver.kept(c)}
	params.Cached = int(c.cached.Load())
	return &params
}

// expire frees the blocks of a prompt that were not pulled.
func (p *pin) expire() {
	if p.of.take(p.params.RequestID) == nil {
		return
	}
	n := p.driver.release(p.choice)
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	p.of.prompts++
	p.of.stranded += int64(n)
}

// take removes a prompt, and returns nil if it is gone.
func (o *pins) take(request string) *pin {
	o.mu.Lock()
	defer o.mu.Unlock()
	p := o.open[request]
	delete(o.open, request)
	return p
}

// pulledPath is where a decode worker reports that it has pulled the blocks of a prompt, or will not.
const pulledPath = "/sim/kv/pulled"

// heldPath is where a decode worker asks whether the blocks of a prompt are still there, as NIXL's handshake shows
// whether the engine is still the one that the parameters name. To ask is to renew the lease, as NIXL's heartbeats do.
const heldPath = "/sim/kv/held"

// pulled frees the blocks of a prompt that a decode worker has done with.
func (o *pins) pulled(w http.ResponseWriter, r *http.Request) {
	if p := o.find(w, r, o.take); p != nil {
		p.timer.Stop()
		writeJSON(w, http.StatusOK, map[string]int{"blocks": p.driver.release(p.choice)})
	}
}

// held answers whether the blocks of a prompt are kept, and keeps them for longer.
func (o *pins) held(w http.ResponseWriter, r *http.Request) {
	if p := o.find(w, r, o.renewed); p != nil {
		writeJSON(w, http.StatusOK, struct{}{})
	}
}

// find returns the prompt that a decode worker's request names, by a function of its id. If there is none it answers
// the request.
func (o *pins) find(w http.ResponseWriter, r *http.Request, by func(request string) *pin) (p *pin) {
	var ask transferParams
	if err := json.NewDecoder(io.LimitReader(r.Body, 1<<16)).Decode(&ask); err != nil {
		writeError(w, badRequest("", "The body is no JSON: "+err.Error()))
		return nil
	}
	if ask.EngineID == o.engine {
		p = by(ask.RequestID)
	}
	if p == nil {
		writeError(w, newError(http.StatusNotFound, "NotFoundError", "remote_request_id",
			"Nothing is kept for this request: it was pulled, has expired or is another process's."))
	}
	return p
}

// renewed returns a prompt that is kept, nil if it is gone. Its blocks are kept for two thirds of a lease from now on,
// if that is longer than it was.
func (o *pins) renewed(request string) *pin {
	o.mu.Lock()
	defer o.mu.Unlock()
	p := o.open[request]
	if until := time.Now().Add(o.life * 2 / 3); p != nil && !o.fixed && until.After(p.until) {
		p.until = until
		p.timer.Reset(time.Until(until))
	}
	return p
}

// expired returns how many prompts were not pulled in time, and their blocks.
func (o *pins) expired() (prompts, blocks int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.prompts, o.stranded
}

// expose returns vLLM's count of expired prompts, and the simulator's own of blocks.
func (o *pins) expose(cfg *Config, engines []engine.Stats) []byte {
	x := &exposition{model: `model_name=` + strconv.Quote(cfg.Models[0]), engines: engines}
	prompts, blocks := o.expired()
	x.family("vllm:nixl_num_kv_expired_reqs_total", "counter", "Number of requests that had their KV expire.")
	x.sample("vllm:nixl_num_kv_expired_reqs_total", 0, "", float64(prompts))
	x.family("sim:kv_blocks_stranded_total", "counter", "KV blocks of requests that had their KV expire.")
	x.sample("sim:kv_blocks_stranded_total", 0, "", float64(blocks))
	x.gauge("sim:kv_blocks_pinned", "KV blocks that wait for a decode worker.",
		func(st *engine.Stats) float64 { return float64(st.BlocksPinned) })
	return x.Bytes()
}

// puller notifies the prefill worker when a choice has its blocks, or ends without them.
type puller struct {
	from transferParams
	once sync.Once
	got  chan struct{} // closed then
}

// newPuller makes a puller that renews the lease of the blocks until then, six times in each, while the request is
// there.
func newPuller(ctx context.Context, from *transferParams, cfg *Config) *puller {
	p := &puller{from: *from, got: make(chan struct{})}
	if !cfg.PinFixed {
		go p.renew(ctx, max(time.Millisecond, cfg.PinLife/6))
	}
	return p
}

func (p *puller) renew(ctx context.Context, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-p.got:
			return
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if !callPrefill(&p.from, heldPath) {
			return
		}
	}
}

// pullClient reaches prefill workers. Each call has a deadline, as a prefill worker may be gone.
var pullClient = &http.Client{Timeout: 5 * time.Second}

func (p *puller) shown(*choice) {
	p.once.Do(func() {
		close(p.got)
		go p.tell()
	})
}

func (p *puller) answer(*choice) *transferParams { return nil }

// tell has the prefill worker free the blocks. It tries again, as a connection that was idle may just have been closed.
// Where the worker cannot be reached its own timer frees them.
func (p *puller) tell() {
	for range 3 {
		if callPrefill(&p.from, pulledPath) {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// callPrefill sends a prefill worker the parameters that it gave, and reports whether it keeps the prompt.
func callPrefill(to *transferParams, path string) (kept bool) {
	body, _ := json.Marshal(to) // strings and numbers
	url := "http://" + net.JoinHostPort(to.Host, strconv.Itoa(to.Port)) + path
	resp, err := pullClient.Post(url, "application/json", bytes.NewReader(body))
	if err != nil {
		return false
	}
	io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<16))
	resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}
