package exchange

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/request/epoch"
	"github.com/warmpath/warmpath/daemon/request/message"
	"github.com/warmpath/warmpath/daemon/request/pair"
	"github.com/warmpath/warmpath/daemon/transport/upstream"
)

// duo is a scene with two prefillers, p0 and p1, and two decoders, d0 and d1, which speak a connector.
type duo struct {
	*scene
	connector pair.Connector

	mu     sync.Mutex // guards all below
	got    []string   // a line a request at a worker, in their order
	pinned map[string]bool
	n      int
	lead   string         // prompts begin with it
	breaks string         // the workers whose id begins so fail
	loses  string         // what a decoder answers that is to read the KV of a prefiller which lost it; "" = it reads it
	during func(w string) // is called for each request at a worker before its answer
	rooms  map[string]bool

	refuses  string            // the decoders whose id begins so answer so to what they are told to read, "" = none does
	refusal  int               // 0 = 503
	model    string            // that the workers serve, others get 404; "" = they serve any
	held     string            // what a prefiller says of its cache
	engines  map[string]string // that prefillers name, by their ids
	fill     string            // further numbers in a prefiller's parameters
	fails500 string            // the decoder that answers 500 before it reads
	silent   bool              // bootstrap servers hang
	picky    bool              // decoders answer 400 to each answer of more than one token

	compute func(id string, gone <-chan struct{}) bool // takes its time, or is false if the client leaves before; nil = none

	stuck chan struct{} // until it is closed prefillers hang, and decoders that wait for them; nil = none does
}

func newDuo(t *testing.T, c pair.Connector) *duo { t.Helper(); return newDuoOf(t, c, decoders(c)) }

// decoders is the role of workers that are handed prompts. A server of SGLang does one thing.
func decoders(c pair.Connector) worker.Role {
	if c.Alone() {
		return worker.Both
	}
	return worker.Decodes
}

// newDuoOf makes one whose decoders have that role.
func newDuoOf(t *testing.T, c pair.Connector, decoders worker.Role) *duo {
	t.Helper()
	d := &duo{scene: newScene(t), connector: c, held: `{"cached_tokens":7}`, pinned: map[string]bool{}, rooms: map[string]bool{}}
	var specs []worker.Spec
	clients := map[string]*upstream.Client{}
	bootstrap := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d.mu.Lock()
		silent := d.silent
		d.mu.Unlock()
		if silent {
			<-r.Context().Done()
			return
		}
		_, _ = io.WriteString(w, `{"0":{"engine_id":"engine-0"}}`)
	}))
	t.Cleanup(bootstrap.Close)
	u, _ := url.Parse(bootstrap.URL)
	port, _ := strconv.Atoi(u.Port())
	for _, id := range []string{"p0", "p1", "d0", "d1"} {
		l := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { d.serve(id, w, r) }))
		t.Cleanup(l.Close)
		t.Cleanup(l.CloseClientConnections)
		spec := worker.Spec{ID: id, URL: l.URL, Role: decoders}
		if id[0] == 'p' {
			spec.Role = worker.Both
			spec.Labels = map[string]string{"role": "prefill"}
		} else if decoders == worker.Decodes {
			spec.Labels = map[string]string{"role": "decode"}
		}
		specs = append(specs, spec)
		client, err := upstream.New(upstream.Config{URL: l.URL})
		if err != nil {
			t.Fatal(err)
		}
		clients[l.URL] = client
	}
	d.pool.Pairing = &epoch.Pairing{Connector: c, Threshold: 100, Bootstrap: port, Prefillers: worker.Fence{"role=prefill"},
		Decoders: worker.Fence{"!role=prefill"}}
	d.pool.Clients.Set(clients)
	d.pool.Workers.Update(specs, time.Now())
	for _, id := range d.prober.ids {
		d.pool.Workers.Healthy(id, time.Now())
	}
	return d
}

// duoParams are the kv_transfer_params of these engines.
type duoParams struct {
	Decode  bool   `json:"do_remote_decode"`
	Prefill bool   `json:"do_remote_prefill"`
	Block   string `json:"remote_block_ids"`
	ID      string `json:"transfer_id"`
	Addr    string `json:"remote_bootstrap_addr"`
	Engine  string `json:"remote_engine_id"`
}

// transfer pins a block or unpins it, and returns what is noted of that, and what a prefiller answers with.
func (d *duo) transfer(id string, p *duoParams) (line, handed string) {
	switch {
	case p.ID != "":
		return fmt.Sprintf(" transfer=%v engine=%s", p.Decode != p.Prefill, p.Engine), ""
	case p.Decode:
		d.n++
		block := fmt.Sprint("block-", d.n)
		d.pinned[block] = d.loses == ""
		return " pins", fmt.Sprintf(`,"kv_transfer_params":{"do_remote_prefill":true,"remote_block_ids":"%s","remote_engine_id":"%s","fill":[%s0]}`,
			block, d.engines[id], d.fill)
	case p.Prefill && d.pinned[p.Block]:
		delete(d.pinned, p.Block)
		return " pulls", ""
	}
	return " pulls nothing", ""
}

// serve plays an engine with the connector. A prefiller pins what it is asked for, and a decoder unpins it.
func (d *duo) serve(id string, w http.ResponseWriter, r *http.Request) {
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	var b struct {
		Model     string
		MaxTokens int        `json:"max_completion_tokens"`
		Stream    bool       `json:"stream"`
		Params    *duoParams `json:"kv_transfer_params"`
		Room      uint64     `json:"bootstrap_room"`
	}
	if err := json.Unmarshal(text, &b); err != nil {
		d.mu.Lock()
		d.got = append(d.got, id+" cannot read it")
		d.mu.Unlock()
		http.Error(w, err.Error(), 400)
		return
	}
	line := fmt.Sprintf("%s max=%d stream=%v", id, b.MaxTokens, b.Stream)
	if d.compute != nil && !d.compute(id, r.Context().Done()) {
		return
	}
	handed, told := "", id[0] == 'd' && (b.Params != nil || b.Room > 0 || r.Header.Get(pair.HeaderPrefiller) != "")
	d.mu.Lock()
	if stuck := d.stuck; stuck != nil && (id[0] == 'p' || told && !d.connector.InTurn()) {
		d.got = append(d.got, line+" hangs")
		d.mu.Unlock()
		select {
		case <-stuck:
		case <-r.Context().Done():
			return
		}
		d.mu.Lock()
	}
	if status := d.refuse(id, b.Model, b.MaxTokens, b.Params != nil); status != 0 {
		d.got = append(d.got, line+fmt.Sprint(" ", status))
		d.mu.Unlock()
		http.Error(w, `{"error":{"message":"refused"}}`, status)
		return
	}
	if b.Params != nil {
		more, by := d.transfer(id, b.Params)
		line, handed = line+more, by
	}
	if b.Room > 0 {
		line += fmt.Sprintf(" again=%v", d.rooms[fmt.Sprint(b.Room)])
		d.rooms[fmt.Sprint(b.Room)] = true
	}
	if to := r.Header.Get(pair.HeaderPrefiller); to != "" {
		line += " sidecar"
	}
	fails, during, loses := d.breaks != "" && strings.HasPrefix(id, d.breaks), d.during, d.loses
	d.got = append(d.got, line)
	d.mu.Unlock()
	if during != nil {
		during(id)
	}
	if fails {
		http.Error(w, `{"error":{"message":"broken"}}`, http.StatusServiceUnavailable)
		return
	}
	if told && loses != "" {
		lose(w, loses)
		return
	}
	d.mu.Lock()
	held := map[bool]string{true: d.held, false: `{"cached_tokens":896}`}[id[0] == 'p']
	d.mu.Unlock()
	give(w, held, handed)
}

// refuse returns the status with which a worker refuses a request before it reads any KV, 0 if it does not.
func (d *duo) refuse(id, model string, tokens int, told bool) int {
	switch {
	case d.model != "" && model != d.model:
		return http.StatusNotFound
	case d.refuses != "" && strings.HasPrefix(id, d.refuses) && told:
		return cmp.Or(d.refusal, http.StatusServiceUnavailable)
	case d.fails500 == id && told:
		return http.StatusInternalServerError
	case d.picky && id[0] == 'd' && tokens > 1:
		return http.StatusBadRequest
	}
	return 0
}

// give answers with a word. held are the details of the prompt's tokens.
func give(w http.ResponseWriter, held, handed string) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = fmt.Fprintf(w, `{"id":"x","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant",`+
		`"content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":900,"completion_tokens":1,"total_tokens":901,`+
		`"prompt_tokens_details":%s}%s}`, held, handed)
}

// lose answers for a decoder that cannot load the KV.
func lose(w http.ResponseWriter, says string) {
	if strings.HasPrefix(says, "data:") {
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		_, _ = io.WriteString(w, says)
		return
	}
	http.Error(w, says, http.StatusInternalServerError)
}

// locked changes what the workers do while they may serve.
func (d *duo) locked(change func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	change()
}

// ask sends a chat with so many bytes of prompt, and returns its answer.
func (d *duo) ask(bytes int, extra string) (*message.Inbound, *message.Outbound) {
	return d.askWith(d.lead, bytes, extra)
}

// askWith is ask with a prompt that begins with that text.
func (d *duo) askWith(lead string, bytes int, extra string) (*message.Inbound, *message.Outbound) {
	in := inbound("POST", "/v1/chat/completions", fmt.Sprintf(`{"model":"m","messages":[{"role":"user","content":"%s"}],`+
		`"max_completion_tokens":50%s}`, lead+strings.Repeat("word ", bytes/5), extra), pair.HeaderPrefiller, "10.0.0.1:1")
	in.Epoch, in.ID = d.epoch, "id-1"
	life := new(message.Life)
	alone.Begin(life)
	defer life.Leave()
	return in, d.Serve(life, in)
}

// took returns the lines of the workers since the last call.
func (d *duo) took() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	defer func() { d.got = nil }()
	return strings.Join(d.got, "; ")
}

// served is took without what only has a prefiller free its memory, which may come at any time.
func (d *duo) served() string {
	lines := slices.DeleteFunc(strings.Split(d.took(), "; "), func(l string) bool {
		return strings.HasPrefix(l, "d") && strings.Contains(l, " max=1 ")
	})
	return strings.Join(lines, "; ")
}

// set has the workers whose id begins so fail, and during called for each request at a worker.
func (d *duo) set(breaks string, during func(w string)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.breaks, d.during = breaks, during
}

// lose has decoders answer so that are to read the KV of a prefiller.
func (d *duo) lose(answer string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.loses = answer
}

// hang has all prefillers hang, or go on.
func (d *duo) hang(stuck chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stuck = stuck
}

func (d *duo) stranded() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.pinned)
}

// busy reports whether a request is counted at a worker.
func (d *duo) busy() bool {
	for _, n := range d.pool.Workers.InFlight() {
		if n != 0 {
			return true
		}
	}
	return false
}

// urlOf returns the URL of a worker.
func (d *duo) urlOf(id string) string {
	for _, s := range d.pool.Workers.Stats(time.Now()) {
		if s.ID == id {
			return s.URL
		}
	}
	return ""
}
