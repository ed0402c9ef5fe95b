package vllmsim

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/vllmsim/engine"
)

// What a trainer asks of a worker between two of its steps, as vLLM 0.32 serves it in its development mode
// (entrypoints/serve/dev: rlhf, sleep, rpc).

// weights are those that a worker has.
type weights struct {
	mu      sync.Mutex
	version *string  // as committed last; nil = none was
	updates int      // since the start
	number  uint32   // of the weights, for the engines
	asleep  []string // tags of the memory that a sleep has freed
	level   int      // of the sleep
}

// numbers gives equal weights of several workers, which may share a tier, an equal number. 0 are those of the start.
var numbers = struct {
	sync.Mutex
	of map[string]uint32
}{of: map[string]uint32{"": 0}}

// numberOf returns the number of weights by their version or count of updates.
func numberOf(name string) uint32 {
	numbers.Lock()
	defer numbers.Unlock()
	n, ok := numbers.of[name]
	if !ok {
		n = uint32(len(numbers.of))
		numbers.of[name] = n
	}
	return n
}

// label returns the version, "" for none.
func (w *weights) label() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.labelled()
}

// labelled is label for a caller that holds mu.
func (w *weights) labelled() string {
	if w.version == nil {
		return ""
	}
	return *w.version
}

// expose returns what /metrics has of sleep and of blocks of other weights. The latter is no metric of vLLM's.
func (w *weights) expose(cfg *Config, engines []engine.Stats) []byte {
	w.mu.Lock()
	awake, level := len(w.asleep) == 0, w.level
	w.mu.Unlock()
	x := &exposition{model: `model_name=` + strconv.Quote(cfg.Models[0]), engines: engines}
	x.family("vllm:engine_sleep_state", "gauge", "Engine sleep state; awake = 0 means engine is sleeping.")
	x.each(func(i int, _ *engine.Stats) {
		for state, is := range map[string]bool{"awake": awake, "weights_offloaded": !awake && level == 1,
			"discard_all": !awake && level == 2} {
			x.sample("vllm:engine_sleep_state", i, `sleep_state="`+state+`",`, map[bool]float64{true: 1}[is])
		}
	})
	x.counter("sim:stale_requests_total", "Requests that got blocks which other weights have computed.",
		func(st *engine.Stats) int64 { return st.StaleRequests })
	return x.Bytes()
}

// trainingAPI serves the calls.
type trainingAPI struct {
	cfg     *Config
	ranks   *ranks
	weights *weights
}

func (a trainingAPI) routes(m router) {
	m.on("/pause", "POST", a.pause)
	m.on("/resume", "POST", a.resume)
	m.on("/is_paused", "GET", a.isPaused)
	m.on("/abort_requests", "POST", a.abortRequests)
	m.on("/sleep", "POST", a.sleep)
	m.on("/wake_up", "POST", a.wakeUp)
	m.on("/is_sleeping", "GET", a.isSleeping)
	m.on("/init_weight_transfer_engine", "POST", a.initTransfer)
	m.on("/start_weight_update", "POST", say("Weight update started"))
	m.on("/update_weights", "POST", a.update)
	m.on("/finish_weight_update", "POST", a.finishUpdate)
	m.on("/update_weight_version", "POST", a.setVersion)
	m.on("/weight_info", "GET", a.info)
	m.on("/collective_rpc", "POST", a.call)
}

func say(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, map[string]string{"message": text})
	}
}

func (a trainingAPI) pause(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	mode := q.Get("mode")
	if wait, _ := strconv.ParseBool(q.Get("wait_for_inflight_requests")); wait {
		mode = "wait"
	}
	clear := true
	if on, err := strconv.ParseBool(q.Get("clear_cache")); err == nil {
		clear = on
	}
	if !a.hold(w, r, mode, clear) {
		return
	}
	writeJSON(w, http.StatusOK, map[string]string{"status": "paused"})
}

// hold pauses the engines, waits until they rest, and empties the caches on the GPU: mode keep computes what it holds
// again then, as vLLM does. It returns false if it has refused the mode or the client has gone.
func (a trainingAPI) hold(w http.ResponseWriter, r *http.Request, mode string, clear bool) bool {
	switch mode {
	case "", "abort":
		a.ranks.each(func(d *driver) { d.pause(engine.Closing, true) })
	case "wait":
		a.ranks.each(func(d *driver) { d.pause(engine.Closing, false) })
	case "keep":
		a.ranks.each(func(d *driver) { d.pause(engine.Frozen, false) })
	default:
		writeError(w, invalid("literal_error", "query.mode", "Input should be 'abort', 'wait' or 'keep'", "'"+mode+"'"))
		return false
	}
	rests := func() bool {
		all := true
		a.ranks.each(func(d *driver) {
			_, rests := d.paused()
			all = all && rests
		})
		return all
	}
	for !rests() {
		if !pass(r.Context(), time.Millisecond) {
			return false
		}
	}
	if clear {
		a.ranks.resetCache(true, false)
	}
	return true
}

// pass waits, and returns false if ctx ends before.
func pass(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

func (a trainingAPI) resume(w http.ResponseWriter, _ *http.Request) {
	a.ranks.each((*driver).resume)
	writeJSON(w, http.StatusOK, map[string]string{"status": "resumed"})
}

// isPaused serves GET /is_paused, which says so of a sleeping engine too.
func (a trainingAPI) isPaused(w http.ResponseWriter, _ *http.Request) {
	paused, _ := a.ranks.drivers[0].paused()
	writeJSON(w, http.StatusOK, map[string]bool{"is_paused": paused})
}

// abortRequests serves POST /abort_requests. It ends all requests, whichever the body names.
func (a trainingAPI) abortRequests(w http.ResponseWriter, r *http.Request) {
	if !readJSON(w, r, new(struct{})) {
		return
	}
	n := 0
	a.ranks.each(func(d *driver) {
		st := d.lastStats()
		n += st.Running + st.Waiting + st.Loading
	})
	a.ranks.abort()
	writeJSON(w, http.StatusOK, map[string]any{"status": "aborted", "aborted": n})
}

// sleep serves POST /sleep. Level 0 only pauses, 1 frees the memory of the weights and of the KV cache, and 2 discards
// the weights too.
func (a trainingAPI) sleep(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	level := 1
	if s := q.Get("level"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil || n < 0 || n > 2 {
			writeError(w, badRequest("level", "level is 0, 1 or 2"))
			return
		}
		level = n
	}
	if !a.hold(w, r, q.Get("mode"), level > 0) {
		return
	}
	asleep := []string{"weights", "kv_cache"}
	if level == 0 {
		asleep = []string{"scheduling"}
	}
	a.weights.mu.Lock()
	a.weights.asleep, a.weights.level = asleep, level
	a.weights.mu.Unlock()
}

// wakeUp serves POST /wake_up. vLLM lets its scheduler go on whatever the tags, and fails where it lacks memory then.
// Here it goes on when it has all.
func (a trainingAPI) wakeUp(w http.ResponseWriter, r *http.Request) {
	tags := r.URL.Query()["tags"]
	a.weights.mu.Lock()
	a.weights.asleep = slices.DeleteFunc(a.weights.asleep, func(tag string) bool {
		return len(tags) == 0 || slices.Contains(tags, tag)
	})
	awake := len(a.weights.asleep) == 0
	a.weights.mu.Unlock()
	if awake {
		a.ranks.each((*driver).resume)
	}
}

func (a trainingAPI) isSleeping(w http.ResponseWriter, _ *http.Request) {
	paused, _ := a.ranks.drivers[0].paused()
	writeJSON(w, http.StatusOK, map[string]bool{"is_sleeping": paused})
}

func (a trainingAPI) initTransfer(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Info json.RawMessage `json:"init_info"`
	}
	if readJSON(w, r, &body) && given(w, "init_info", body.Info) {
		say("Weight transfer initialized")(w, r)
	}
}

// given refuses a body that lacks a field.
func given(w http.ResponseWriter, field string, v json.RawMessage) bool {
	if isNull(v) {
		writeJSON(w, http.StatusBadRequest, map[string]string{"detail": "Missing '" + field + "' in request body"})
		return false
	}
	return true
}

// readJSON reads a body, none being {}.
func readJSON(w http.ResponseWriter, r *http.Request, into any) bool {
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(into)
	if err != nil && err.Error() != "EOF" {
		writeJSON(w, http.StatusBadRequest, map[string]string{"detail": "Invalid JSON format"})
		return false
	}
	return true
}

// update serves POST /update_weights. Its update_info may have "seconds" of simulated time: so long the engines do
// nothing else. From then on other weights compute.
func (a trainingAPI) update(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Info json.RawMessage `json:"update_info"`
	}
	if !readJSON(w, r, &body) || !given(w, "update_info", body.Info) {
		return
	}
	if a.load(r.Context(), body.Info) {
		say("Weights updated")(w, r)
	}
}

// load takes the time of an update and replaces the weights. It returns false if the client has gone.
func (a trainingAPI) load(ctx context.Context, info json.RawMessage) bool {
	with := struct{ Seconds float64 }{a.cfg.UpdateSeconds}
	_ = json.Unmarshal(info, &with) // what else it has is the trainer's
	a.ranks.freeze(true)
	defer a.ranks.freeze(false)
	if !pass(ctx, time.Duration(max(0, with.Seconds)/a.cfg.Speed*float64(time.Second))) {
		return false
	}
	a.weights.mu.Lock()
	defer a.weights.mu.Unlock()
	a.weights.updates++
	a.replace(fmt.Sprint("update ", a.weights.updates))
	return true
}

// replace has the weights of that name compute from now on, under the committed version. It wants weights.mu.
func (a trainingAPI) replace(name string) {
	a.weights.number = numberOf(name)
	label := a.weights.labelled()
	a.ranks.each(func(d *driver) { d.setWeights(a.weights.number, label) })
}

func (a trainingAPI) finishUpdate(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Version *string `json:"weight_version"`
	}
	if !readJSON(w, r, &body) {
		return
	}
	if body.Version != nil {
		a.weights.mu.Lock()
		a.weights.version = body.Version
		a.replace("version " + *body.Version)
		a.weights.mu.Unlock()
	}
	say("Weight update finished")(w, r)
}

// setVersion serves POST /update_weight_version, which names the weights that are there.
func (a trainingAPI) setVersion(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Version *string `json:"new_version"`
	}
	if !readJSON(w, r, &body) {
		return
	}
	if body.Version == nil {
		writeError(w, missing("body.new_version"))
		return
	}
	a.weights.mu.Lock()
	a.weights.version = body.Version
	a.ranks.each(func(d *driver) { d.setWeights(a.weights.number, *body.Version) })
	a.weights.mu.Unlock()
	writeJSON(w, http.StatusOK, map[string]any{"success": true, "new_version": *body.Version})
}

func (a trainingAPI) info(w http.ResponseWriter, _ *http.Request) {
	a.weights.mu.Lock()
	defer a.weights.mu.Unlock()
	writeJSON(w, http.StatusOK, map[string]any{"weight_version": a.weights.version})
}

// call serves POST /collective_rpc. A method with "weights" in its name is an update, any other does nothing.
func (a trainingAPI) call(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Method string          `json:"method"`
		Kwargs json.RawMessage `json:"kwargs"`
	}
	if !readJSON(w, r, &body) {
		return
	}
	if body.Method == "" {
		given(w, "method", nil)
		return
	}
	if strings.Contains(body.Method, "weights") && !a.load(r.Context(), body.Kwargs) {
		return
	}
	writeJSON(w, http.StatusOK, map[string]any{"results": []any{nil}})
}
