package main

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/warmpath/warmpath/testdata/rig/wire"
	"github.com/warmpath/warmpath/testdata/trials/engine"
)

const (
	keyParams      = "kv_transfer_params"
	pathChat       = "/v1/chat/completions"
	pathCompletion = "/v1/completions"
	pathResponses  = "/v1/responses"
	pathMessages   = "/v1/messages"
	pathGenerate   = "/inference/v1/generate"
	pathCount      = "/v1/messages/count_tokens"
)

// A side is what a worker does for a request.
type side int

const (
	prefills side = iota
	decodes
)

// worker is an engine process that may be started again.
type worker struct {
	engine.Engine
	st    *stage
	host  string // its own address of this machine: a pool has one bootstrap_port
	addr  string
	boot  wire.Worker // the bootstrap server
	role  atomic.Int32
	ill   atomic.Bool
	stuck atomic.Int64 // until then, in ns, it answers no request
	mem   atomic.Pointer[memory]

	mu     sync.Mutex // guards loaded
	loaded []string   // adapters
}

func (w *worker) start() error {
	w.mem.Store(newMemory(w.st))
	w.Post, w.Page = w.post, w.page
	w.Health = func(c *wire.Call) bool {
		if w.ill.Load() {
			return c.Plain(503, "text/plain", "")
		}
		return c.Plain(200, "text/plain", "")
	}
	if err := w.Start(net.JoinHostPort(w.host, "0")); err != nil {
		return err
	}
	w.addr = w.Addr()
	w.boot.Handle = func(c *wire.Call) bool { // vllm/.../v1/mooncake/mooncake_utils.py, MooncakeBootstrapServer
		return c.Plain(200, "application/json", fmt.Sprintf(`{"0":{"engine_id":%q,"worker_addr":{}}}`, w.mem.Load().id))
	}
	return w.boot.Start(net.JoinHostPort(w.host, strconv.Itoa(w.st.bootPort)))
}

// restart ends the process as SIGKILL does, and starts another one.
func (w *worker) restart(gone time.Duration) error {
	w.Close()
	w.mem.Load().end()
	time.Sleep(gone)
	w.mu.Lock()
	w.loaded = nil
	w.mu.Unlock()
	w.mem.Store(newMemory(w.st))
	return w.Start(w.addr)
}

func (w *worker) close() {
	w.Close()
	w.boot.Close()
}

// page lists the models, adapters among them.
func (w *worker) page(c *wire.Call) (answered, keep bool) {
	if c.Path != "/v1/models" {
		return false, false
	}
	list := fmt.Sprintf(`{"id":"sim","object":"model","created":1,"owned_by":"vllm","root":"sim","parent":null,`+
		`"max_model_len":%d}`, maxLen)
	w.mu.Lock()
	for _, name := range w.loaded {
		list += fmt.Sprintf(`,{"id":%q,"object":"model","created":1,"owned_by":"vllm","root":"/adapters/%s","parent":"sim"}`,
			name, name)
	}
	w.mu.Unlock()
	return true, c.Plain(200, "application/json", `{"object":"list","data":[`+list+`]}`)
}

// adapter loads or unloads one.
func (w *worker) adapter(c *wire.Call) bool {
	f, _ := read(c.Text)
	var name string
	_ = json.Unmarshal(f["lora_name"], &name)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.loaded = slices.DeleteFunc(w.loaded, func(is string) bool { return is == name })
	if c.Path == "/v1/load_lora_adapter" {
		w.loaded = append(w.loaded, name)
	}
	return c.Plain(200, "application/json", `"Success"`)
}

func (w *worker) has(f fields) bool {
	var name string
	_ = json.Unmarshal(f["model"], &name)
	w.mu.Lock()
	defer w.mu.Unlock()
	return name == "sim" || slices.Contains(w.loaded, name)
}

// call is a request at a worker.
type call struct {
	*wire.Call
	s       *spec
	side    side
	f       fields
	params  fields // kv_transfer_params
	prompts []prompt
	stream  bool
	fault   string
	a       answer
	mem     *memory // of the process that got it
}

func (r *call) tokens() (n int) {
	for _, p := range r.prompts {
		n += p.n
	}
	return n
}

// error answers as an engine that fails.
func (r *call) error(status int, words string) bool { return engine.Refuse(r.Call, status, words) }

func (w *worker) post(c *wire.Call) bool {
	if strings.HasSuffix(c.Path, "load_lora_adapter") {
		return w.adapter(c)
	}
	n, err := strconv.Atoi(engine.Field(c, fieldPlay))
	if err != nil || n >= len(w.st.specs) { // the router's own questions
		return c.Plain(404, "application/json", `{"detail":"Not Found"}`)
	}
	f, _ := read(c.Text)
	r := &call{Call: c, s: &w.st.specs[n], f: f, params: f.object(keyParams), stream: f.is("stream", "true"),
		mem: w.mem.Load()}
	w.st.watchFor(r)
	if c.Path == pathCount {
		return c.Plain(200, "application/json", fmt.Sprintf(`{"input_tokens":5,"mark":%q}`, mark(n)))
	}
	r.side = w.sideOf(r)
	r.fault = r.s.next(r.side)
	if until := time.Until(time.Unix(0, w.stuck.Load())); until > 0 && c.Wait(until) {
		return false
	}
	return w.serve(r)
}

// sideOf returns what a worker is to do with a request.
func (w *worker) sideOf(r *call) side {
	switch {
	case r.params.is("do_remote_decode", "true"):
		return prefills
	case r.params.is("do_remote_prefill", "true"):
		return decodes
	}
	return side(w.role.Load())
}

// serve refuses a request, breaks, or goes on.
func (w *worker) serve(r *call) bool {
	e := w.st.fleet.front
	switch r.fault {
	case "500", "503", "429":
		status, _ := strconv.Atoi(r.fault)
		return r.error(status, "played")
	case "reset":
		return engine.Reset(r.Call)
	case "hang":
		r.Wait(wire.Timeout)
		return false
	}
	if why := e.refuses(r.Path, r.Text); why != "" {
		return r.error(400, why)
	}
	if e.rooms && !r.f.has(keyRoom) {
		return r.error(400, "Invalid request: Disaggregated request received without bootstrap room id.")
	}
	if !w.has(r.f) {
		return r.error(404, "The model does not exist.")
	}
	r.prompts = e.prompts(r.Path, r.f)
	r.a = answer{path: r.Path, n: r.s.n, finish: "stop", prompt: r.tokens(), id: fmt.Sprintf("resp_%d", r.s.n),
		usage: r.f.object("stream_options").is("include_usage", "true")}
	if e.reads(r.Path) || r.params["by"] != nil { // a client's own pass where the pool has no pairs for a while
		r.params = nil
	}
	switch w.st.fleet.connector {
	case "sglang":
		return w.meet(r)
	case "sidecar":
		if to := engine.Field(r.Call, fieldPrefiller); to != "" && r.Path != pathMessages && r.Path != pathGenerate {
			return w.sidecar(r, to)
		}
	case "lmcache":
		return w.shared(r)
	}
	switch {
	case r.params.is("do_remote_decode", "true"):
		return w.prefill(r)
	case r.params.is("do_remote_prefill", "true"):
		return w.load(r)
	}
	return w.alone(r)
}

// alone computes prompt and answer.
func (w *worker) alone(r *call) bool {
	if _, done := r.mem.compute(r.Call, r.tokens()); !done || w.late(r) {
		return false
	}
	return w.say(r)
}

// late waits where the fault is to be slow, and reports whether the caller has left meanwhile.
func (w *worker) late(r *call) bool { return r.fault == "slow" && r.Wait(400*time.Millisecond) }

// prefill computes a prompt and keeps it for a decoder.
func (w *worker) prefill(r *call) bool {
	id := "cmpl-" + strconv.Itoa(r.s.n) + "-" + rand.Text()[:8]
	if w.st.fleet.connector == "mooncake" {
		_ = json.Unmarshal(r.params["transfer_id"], &id)
	}
	_, done := r.mem.compute(r.Call, r.tokens())
	if !done || w.late(r) {
		r.mem.unsent(id)
		return false
	}
	switch r.fault {
	case "cut": // the process has ended, and its memory with it
		r.mem.unsent(id)
		r.a.cut(r.Call, false)
		return false
	case "error", "event":
		r.mem.unsent(id)
		r.a.finish = "error"
		return r.Plain(200, "application/json", r.a.whole())
	}
	r.a.finish = "length"
	for i, p := range r.prompts[1:] {
		r.mem.keep(fmt.Sprintf("%s/%d", id, i+1), p, r.s.n)
	}
	r.mem.keep(id, r.prompts[0], r.s.n)
	if w.st.fleet.connector != "mooncake" {
		r.a.params = fmt.Sprintf(`{"do_remote_prefill":true,"do_remote_decode":false,"remote_block_ids":[[0,1,2]],`+
			`"remote_engine_id":%q,"remote_request_id":%q,"remote_host":%q,"remote_port":5600,"tp_size":1}`, r.mem.id, id,
			w.host)
	}
	return r.Plain(200, "application/json", r.a.whole())
}

// load reads what a prefiller keeps, and answers.
func (w *worker) load(r *call) bool {
	var of, id string
	_ = json.Unmarshal(r.params["remote_engine_id"], &of)
	_ = json.Unmarshal(r.params["remote_request_id"], &id)
	if n, _ := r.f.number("n"); n > 1 || len(r.prompts) > 1 {
		w.st.breach("several", r.s.n, "%d prompts with %d answers are to read one prompt's blocks", len(r.prompts), n)
	}
	from := w.st.engineOf(of)
	var got *prompt
	switch {
	case from == nil:
	case w.st.fleet.connector == "mooncake":
		_ = json.Unmarshal(r.params["transfer_id"], &id)
		var gone bool
		got, gone = w.await(r, from.pull(id, r.s.n))
		if gone {
			return false
		}
	case r.Wait(time.Millisecond): // aborted before it was scheduled
		from.take(id)
		return false
	case r.fault != "lost":
		got = from.take(id)
	}
	if got == nil { // kv_load_failure_policy = "fail"
		w.st.lost.Add(1)
		return r.error(500, "KV load failed")
	}
	return w.decode(r, *got)
}

// await waits for a prompt, which is nil if it does not come, and reports whether the caller has left meanwhile. The
// wait itself goes on without it.
func (w *worker) await(r *call, from <-chan *prompt) (got *prompt, gone bool) {
	for end := time.Now().Add(wire.Timeout); time.Now().Before(end); {
		select {
		case got = <-from:
			return got, false
		default:
		}
		if r.Wait(4 * time.Millisecond) {
			return nil, true
		}
	}
	return nil, false
}

// decode answers from the blocks that were read.
func (w *worker) decode(r *call, got prompt) bool {
	if w.st.read.Add(1); got != r.prompts[0] {
		w.st.breach("differ", r.s.n, "its prompt has %d tokens, the blocks that were read are of another one of %d",
			r.prompts[0].n, got.n)
	}
	r.a.cached = max(0, r.a.prompt-1)
	if w.late(r) {
		return false
	}
	return w.say(r)
}

// say writes the answer, or breaks in it.
func (w *worker) say(r *call) bool {
	switch r.fault {
	case "late":
		return engine.Reset(r.Call)
	case "cut":
		r.a.cut(r.Call, r.stream)
		return false
	case "lost":
		return r.error(500, "played")
	case "error":
		if !r.stream { // vllm/entrypoints/openai/engine/serving.py: finish_reason error is 500
			return r.error(500, "Internal server error")
		}
		return engine.Stream(r.Call, r.a.failed(), engine.Done)
	case "event":
		if !r.stream {
			return r.error(500, "Internal server error")
		}
		return engine.Stream(r.Call, r.a.events()[0], r.a.failed(), engine.Done)
	}
	if !r.stream {
		if r.Wait(2 * time.Millisecond) {
			return false
		}
		return r.Plain(200, "application/json", r.a.whole())
	}
	if r.StreamHead() != nil {
		return false
	}
	for _, event := range r.a.events() {
		if r.Chunk(event) != nil || r.Wait(time.Millisecond) {
			return false
		}
	}
	return engine.End(r.Call)
}

// shared is a worker whose prompts are in a cache that all share.
func (w *worker) shared(r *call) bool {
	all := true
	for _, p := range r.prompts {
		_, is := w.st.cache.Load(p)
		all = all && is
	}
	if !all {
		if begun, done := r.mem.compute(r.Call, r.tokens()); !done || w.late(r) {
			if begun {
				w.st.ended.Add(1)
			}
			return false
		}
	} else if r.side == decodes {
		w.st.read.Add(1)
	}
	for _, p := range r.prompts {
		w.st.cache.Store(p, true)
	}
	return w.say(r)
}

// sidecar is llm-d's beside a decoder: it has the prefiller that the header names compute the prompt. Of 4xx of the
// prefiller it tells its client, after anything else the decoder computes the prompt: llm-d/llm-d-inference-scheduler
// (520af478), pkg/sidecar/proxy/connector_nixlv2.go, shouldFallbackToDecode. Messages go to the decoder alone:
// proxy.go.
func (w *worker) sidecar(r *call, to string) bool {
	p := w.st.at(to)
	if p == nil { // allowlist.go
		return r.error(403, "Forbidden: prefill target not allowed by SSRF protection")
	}
	switch fault := r.s.next(prefills); fault {
	case "429":
		return r.error(429, "played")
	case "":
		if _, done := p.mem.Load().compute(r.Call, r.tokens()); !done {
			return false
		}
		return w.decode(r, r.prompts[0])
	}
	return w.alone(r)
}

// meet is a worker of SGLang: prefiller and decoder meet in a room.
func (w *worker) meet(r *call) bool {
	name := string(r.f[keyRoom])
	at := r.mem
	if r.side == decodes {
		var host string
		_ = json.Unmarshal(r.f["bootstrap_host"], &host)
		p := w.st.on(host)
		if p == nil {
			return r.error(500, "Could not fetch prefill information")
		}
		at = p.mem.Load()
	}
	answers, _ := r.f.number("n")
	room := at.enter(name, r.s.n, r.side == decodes)
	whole := false
	defer func() { at.leave(name, room, whole) }()
	for end := time.Now().Add(wire.Timeout); ; {
		computed, decoder, aborted := at.look(room)
		switch {
		case aborted || time.Now().After(end):
			return r.error(500, "KVTransferError")
		case r.side == prefills && decoder:
			if _, done := at.compute(r.Call, r.tokens()); !done || w.late(r) {
				return false
			}
			if r.fault == "error" || r.fault == "cut" || r.fault == "event" {
				return r.error(500, "played")
			}
			at.mu.Lock()
			room.computed, room.answers = fold(r.prompts), answers
			at.mu.Unlock()
			whole = true
			return r.Plain(200, "application/json", r.a.whole())
		case r.side == decodes && computed != nil:
			whole = true
			if max(1, answers) != max(1, room.answers) { // io_struct.py: an answer has a room of its own
				w.st.breach("several", r.s.n, "%d answers at the decoder, %d at the prefiller", answers, room.answers)
			}
			r.prompts = []prompt{*fold(r.prompts)}
			return w.decode(r, *computed)
		}
		if r.Wait(4 * time.Millisecond) {
			return false
		}
	}
}

// fold is several prompts as one.
func fold(all []prompt) *prompt {
	var p prompt
	for _, one := range all {
		p.sum, p.n = p.sum*31+one.sum, p.n+one.n
	}
	return &p
}
