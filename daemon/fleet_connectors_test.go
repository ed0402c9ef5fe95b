package daemon

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/request/pair"
)

// pairOfEngines plays a prefiller and a decoder that refuse what the real ones refuse, and hold what a decoder reads
// against its own prompt.
//
//   - vLLM's Python front end (0.14, 0.19, 0.32: entrypoints/openai, pydantic): of a field that comes twice the last
//     counts. 0.14 and 0.19 name no details of a prompt of which nothing was cached, and one list of blocks.
//   - vLLM's Rust front end (rust/src/server, since 0.22): axum's Json of a derived struct refuses a field that comes twice.
//   - NixlConnector (nixl/pull_scheduler.py): a prefiller keeps blocks under remote_request_id, and a decoder that finds
//     none answers 500.
//   - MooncakeConnector (mooncake_connector.py): sends are kept by transfer_id, so that one which comes twice is another
//     prompt's; the engine's id comes from the bootstrap server.
//   - SGLang (scheduler.py): a decode server answers 400 to what has no bootstrap_room, and waits in each of its rooms. A
//     prefill server ends by an assertion without one.
//   - llm-d's sidecar (pkg/sidecar/proxy): it has the prompt computed at x-prefiller-host-port, as nixl does.
type pairOfEngines struct {
	t         *testing.T
	connector pair.Connector
	engine    string // "python 0.14" and so on, "rust"
	boot      *httptest.Server
	first     string // the prefiller's URL
	fill      string // further fields of a prefiller's parameters

	mu      sync.Mutex // guards all below
	kept    map[string]string
	sent    map[string]chan string // prompts by transfer_id or room
	n       int
	handed  int      // prompts that a decoder has got
	refused []string // what was wrong with requests of the router
}

// body is what an engine reads of a request.
type body struct {
	Stream   bool            `json:"stream"`
	Options  json.RawMessage `json:"stream_options"`
	Most     int             `json:"max_tokens"`
	Prompt   json.RawMessage `json:"prompt"`
	Messages json.RawMessage `json:"messages"`
	Params   *struct {
		Decode  bool            `json:"do_remote_decode"`
		Prefill bool            `json:"do_remote_prefill"`
		ID      string          `json:"remote_request_id"`
		Blocks  json.RawMessage `json:"remote_block_ids"`
		Xfer    string          `json:"transfer_id"`
		Engine  string          `json:"remote_engine_id"`
		Addr    string          `json:"remote_bootstrap_addr"`
	} `json:"kv_transfer_params"`
	Room json.RawMessage `json:"bootstrap_room"`
	Host json.RawMessage `json:"bootstrap_host"`

	Input      json.RawMessage `json:"input"`
	Output     int             `json:"max_output_tokens"`
	Completion int             `json:"max_completion_tokens"`
	Keep       any             `json:"truncate_prompt_tokens"`
	Cut        string          `json:"truncation"`
	Many       int             `json:"n"`
}

// prompt is all of the body that the prompt is made of: what is to be cut to what the answer leaves of the context is
// another prompt with another answer, as in vLLM before 0.32.
func (b *body) prompt() string {
	p := string(b.Prompt) + string(b.Messages) + string(b.Input)
	if n, is := b.Keep.(float64); is && n >= 0 {
		return fmt.Sprintf("%s, the last %v", p, n)
	} else if is || b.Cut == "auto" {
		return fmt.Sprintf("%s, but %d", p, b.most())
	}
	return p
}

// most is how long the answer may be.
func (b *body) most() int { return max(b.Most, b.Output, b.Completion) }

// rooms are those of a request to SGLang.
func (b *body) rooms() (rooms []string) {
	var several []json.RawMessage
	if json.Unmarshal(b.Room, &several) != nil {
		several = []json.RawMessage{b.Room}
	}
	for _, r := range several {
		rooms = append(rooms, string(r))
	}
	return rooms
}

// refuse answers 400, and records why.
func (e *pairOfEngines) refuse(w http.ResponseWriter, format string, args ...any) {
	why := fmt.Sprintf(format, args...)
	e.mu.Lock()
	e.refused = append(e.refused, why)
	e.mu.Unlock()
	http.Error(w, fmt.Sprintf(`{"error":{"message":%q,"code":400}}`, why), http.StatusBadRequest)
}

// read reads a request as the engine's front end does.
func (e *pairOfEngines) read(w http.ResponseWriter, r *http.Request) (b *body, text []byte, ok bool) {
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, nil, false
	}
	if e.engine == "rust" {
		d, had := json.NewDecoder(bytes.NewReader(text)), map[any]bool{}
		for _, err := d.Token(); err == nil && d.More(); {
			key, _ := d.Token()
			if had[key] {
				e.refuse(w, "duplicate field %v", key)
				return nil, nil, false
			}
			had[key] = true
			var value any
			err = d.Decode(&value)
		}
	}
	b = new(body)
	if err := json.Unmarshal(text, b); err != nil {
		e.refuse(w, "%v", err)
		return nil, nil, false
	}
	return b, text, true
}

// channel returns where the KV of a transfer comes.
func (e *pairOfEngines) channel(id string) chan string {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.sent[id] == nil {
		e.sent[id] = make(chan string, 2)
	}
	return e.sent[id]
}

// prefill plays the prefiller.
func (e *pairOfEngines) prefill(w http.ResponseWriter, r *http.Request) {
	b, _, ok := e.read(w, r)
	if !ok {
		return
	}
	handed := "null"
	switch {
	case b.most() != 1 || b.Many > 1 || b.Stream || b.Options != nil && string(b.Options) != "null":
		e.refuse(w, "no first leg: %d tokens, %d answers, stream %v %s", b.most(), b.Many, b.Stream, b.Options)
		return
	case e.connector == pair.SGLang:
		if b.Room == nil {
			panic(http.ErrAbortHandler)
		}
		for _, room := range b.rooms() {
			e.channel(room) <- b.prompt()
		}
	case e.connector == pair.Mooncake:
		if b.Params == nil || !b.Params.Decode || b.Params.Xfer == "" {
			e.refuse(w, "no transfer_id for a prefill")
			return
		}
		c := e.channel(b.Params.Xfer)
		if len(c) > 0 {
			e.refuse(w, "transfer_id %s comes twice", b.Params.Xfer)
			return
		}
		c <- b.prompt()
	case e.connector == pair.LMCache:
		e.mu.Lock()
		e.kept[b.prompt()] = b.prompt()
		e.mu.Unlock()
	case e.connector == pair.Sidecar && string(b.Prompt) == `"a"`: // the router's, which asks whether it works on
	default:
		if b.Params == nil || !b.Params.Decode {
			e.refuse(w, "a prefill without do_remote_decode")
			return
		}
		e.mu.Lock()
		e.n++
		id, blocks := fmt.Sprint("req-", e.n, "@", r.Host), "[[1,2]]"
		e.kept[id] = b.prompt()
		e.mu.Unlock()
		if strings.HasSuffix(e.engine, "0.14") || strings.HasSuffix(e.engine, "0.19") {
			blocks = "[1,2]"
		}
		handed = fmt.Sprintf(`{"do_remote_prefill":true,"do_remote_decode":false,"remote_block_ids":%s,"remote_engine_id":%q,`+
			`"remote_request_id":%q,"remote_host":"127.0.0.1","remote_port":5600%s}`, blocks, r.Host, id, e.fill)
	}
	e.answer(w, r, b, 0, handed)
}

// take returns the prompt whose KV a decoder reads, and whether it was told to.
func (e *pairOfEngines) take(r *http.Request, b *body) (prompt string, told bool) {
	wait := func(id string) string {
		select {
		case p := <-e.channel(id):
			return p
		case <-r.Context().Done():
		case <-time.After(10 * time.Second):
		}
		return "nothing"
	}
	switch {
	case e.connector == pair.SGLang:
		for _, room := range b.rooms() {
			prompt = wait(room)
		}
		return prompt, true
	case e.connector == pair.LMCache:
		e.mu.Lock()
		defer e.mu.Unlock()
		p, ok := e.kept[b.prompt()]
		return p, ok
	case b.Params == nil || !b.Params.Prefill:
		return "", false
	case e.connector == pair.Mooncake:
		if b.Params.Engine != "engine-0" || b.Params.Addr != e.boot.URL {
			return "of another engine", true
		}
		return wait(b.Params.Xfer), true
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	p := e.kept[b.Params.ID]
	delete(e.kept, b.Params.ID)
	return p, true
}

// decode plays the decoder, with its sidecar.
func (e *pairOfEngines) decode(w http.ResponseWriter, r *http.Request) {
	b, text, ok := e.read(w, r)
	if !ok {
		return
	}
	if e.connector == pair.Sidecar {
		if b, ok = e.askFirst(w, r, b, text); !ok {
			return
		}
	}
	if e.connector == pair.SGLang && b.Room == nil {
		e.refuse(w, "Disaggregated request received without bootstrap room id")
		return
	}
	cached := 0
	if prompt, told := e.take(r, b); told {
		if prompt != b.prompt() {
			e.mu.Lock()
			e.refused = append(e.refused, "KV of "+prompt)
			e.mu.Unlock()
			http.Error(w, `{"error":{"message":"Internal server error","code":500}}`, http.StatusInternalServerError)
			return
		}
		cached = 99
		e.mu.Lock()
		e.handed++
		e.mu.Unlock()
	}
	e.answer(w, r, b, cached, `{"secret":"of the workers"}`)
}

// askFirst is llm-d's sidecar: it sends the first leg to the prefiller that the router names.
func (e *pairOfEngines) askFirst(w http.ResponseWriter, r *http.Request, b *body, text []byte) (*body, bool) {
	to := r.Header.Values("x-prefiller-host-port")
	if len(to) == 0 {
		return b, true
	}
	var all map[string]json.RawMessage
	if len(to) > 1 || strings.HasPrefix(to[0], "10.") || json.Unmarshal(text, &all) != nil {
		e.refuse(w, "x-prefiller-host-port is %v", to)
		return nil, false
	}
	all["kv_transfer_params"], all["max_tokens"] = []byte(`{"do_remote_decode":true}`), []byte("1")
	delete(all, "max_completion_tokens")
	delete(all, "stream")
	delete(all, "stream_options")
	leg, _ := json.Marshal(all)
	resp, err := http.Post("http://"+to[0]+r.URL.Path, "application/json", bytes.NewReader(leg))
	if err != nil {
		return b, true // connector_nixlv2.go, shouldFallbackToDecode
	}
	defer resp.Body.Close()
	var said body
	if json.NewDecoder(resp.Body).Decode(&said) == nil {
		b.Params = said.Params
	}
	return b, true
}

// generating are the paths at which answers are written.
var generating = []string{"/v1/completions", "/v1/chat/completions", "/v1/responses", "/v1/messages"}

// whole answers what is no prompt for an answer: a pooled vector, for example. None of it names another worker.
func (e *pairOfEngines) whole(w http.ResponseWriter, r *http.Request) {
	text, _ := io.ReadAll(r.Body)
	if bytes.Contains(text, []byte("kv_transfer_params")) || bytes.Contains(text, []byte("bootstrap_room")) ||
		r.Header.Get("x-prefiller-host-port") != "" {
		e.refuse(w, "%s: a leg", r.URL.Path)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, `{"object":"list","data":[{"index":0,"hi":"hi"}],"usage":{"prompt_tokens":100,"total_tokens":100}}`)
}

// answer writes an answer of one word. A prompt of which nothing was cached has no details in older releases.
func (e *pairOfEngines) answer(w http.ResponseWriter, r *http.Request, b *body, cached int, params string) {
	details := fmt.Sprintf(`{"cached_tokens":%d}`, cached)
	if cached == 0 && (strings.HasSuffix(e.engine, "0.14") || strings.HasSuffix(e.engine, "0.19")) {
		details = "null"
	}
	usage := fmt.Sprintf(`"usage":{"prompt_tokens":100,"completion_tokens":1,"total_tokens":101,"prompt_tokens_details":%s}`, details)
	word, delta, object := `"text":"hi"`, `"text":"hi"`, "text_completion"
	if strings.HasPrefix(r.URL.Path, "/v1/chat") {
		word, delta, object = `"message":{"role":"assistant","content":"hi"}`, `"delta":{"content":"hi"}`, "chat.completion"
	}
	if !b.Stream {
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"id":"x","object":%q,"choices":[{"index":0,%s,"finish_reason":"stop"}],%s,"kv_transfer_params":%s}`,
			object, word, usage, params)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = fmt.Fprintf(w, "data: {\"id\":\"x\",\"choices\":[{\"index\":0,%s,\"finish_reason\":\"stop\"}],\"kv_transfer_params\":%s}\n\n", delta, params)
	if strings.Contains(string(b.Options), "true") {
		_, _ = fmt.Fprintf(w, "data: {\"id\":\"x\",\"choices\":[],%s}\n\n", usage)
	}
	_, _ = io.WriteString(w, "data: [DONE]\n\n")
}

// startConnector starts a daemon before such a pair, with a key that has a salt and a limit.
func startConnector(t *testing.T, c pair.Connector, engine string) (*running, *pairOfEngines, string) {
	t.Helper()
	return startConnectorWith(t, c, engine, nil)
}

// startConnectorWith is startConnector with what the prefiller does in place of its work; nil = it does that.
func startConnectorWith(t *testing.T, c pair.Connector, engine string, instead http.HandlerFunc) (*running, *pairOfEngines, string) {
	t.Helper()
	e := &pairOfEngines{t: t, connector: c, engine: engine, kept: map[string]string{}, sent: map[string]chan string{}}
	serve := func(post http.HandlerFunc) *httptest.Server {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch {
			case r.Method == "POST" && !slices.Contains(generating, r.URL.Path):
				e.whole(w, r)
			case r.URL.Path == "/query":
				_, _ = io.WriteString(w, `{"0":{"engine_id":"engine-0"}}`)
			case r.URL.Path == "/v1/models":
				_, _ = io.WriteString(w, `{"object":"list","data":[{"id":"sim","object":"model"}]}`)
			case r.Method == "POST":
				post(w, r)
			}
		}))
		t.Cleanup(s.Close)
		return s
	}
	e.boot = serve(nil)
	at, _ := url.Parse(e.boot.URL)
	if instead == nil {
		instead = e.prefill
	}
	p, d := serve(instead), serve(e.decode)
	e.first = p.URL
	dir := t.TempDir()
	log := filepath.Join(dir, "access.log")
	write(t, filepath.Join(dir, "key"), "secret-key-0123456789")
	toml := strings.Replace(settings("prefixaware", p.URL, d.URL), "[[pools.workers]]", fmt.Sprintf("[pools.disaggregation]\n"+
		"connector = %q\nrule = \"threshold\"\nthreshold = 200\nbootstrap_port = %s\n[[pools.workers]]", c, at.Port()), 1)
	toml = strings.Replace(toml, "id = \"w1\"\n", "id = \"w1\"\nrole = \"prefill\"\n", 1)
	toml = strings.Replace(toml, "id = \"w2\"\n", "id = \"w2\"\nrole = \"decode\"\n", 1)
	toml += fmt.Sprintf("[[keys]]\nname = \"a\"\nfile = %q\ncache_salt = true\ntokens_per_minute = 1000000\n", filepath.Join(dir, "key"))
	return start(t, withServer(toml, fmt.Sprintf("access_log = %q", log)), 2), e, log
}

// TestConnectors runs each row of the table of connectors against engines that refuse what the real ones refuse: bodies
// without and with the fields that the router writes, in all spellings, short and long, streamed and not. Each client gets
// its answer with the prefiller's count of cached tokens, and nothing of what workers tell each other. The log and the
// metrics have the same count, and nothing stays at the prefiller.
func TestConnectors(t *testing.T) {
	t.Parallel()
	engines := []string{"python 0.14", "python 0.19", "python 0.32", "rust"}
	for _, name := range pair.Connectors() {
		c := pair.Connector(name)
		of := engines
		if c == pair.SGLang {
			of = []string{"python 0.32"}
		}
		for _, engine := range of {
			t.Run(name+" "+engine, func(t *testing.T) {
				t.Parallel()
				r, e, log := startConnector(t, c, engine)
				asks := 0
				for i, fields := range []string{
					``, `"max_tokens":50,`, `"stream":true,"stream_options":{"include_usage":true},`, `"stream":true,`,
					`"n":1,"min_tokens":null,"stream_options":null,`,
					`"kv_transfer_params":{"do_remote_prefill":true,"remote_request_id":"req-1"},"bootstrap_room":1,`,
					`"cache_salt":"mine","priority":3,`,
					`"cache_salt":"a","c\u0061che_salt":"b","kv_transfer_params":1,"kv_transfer_p\u0061rams":{},`,
					`"stream":true,"stream_options":{"include_usage":false},"stream_opti\u006fns":null,`,
					`"kv_transfer_p\u0061rams":{},"max\u005ftokens":9,"c\u0061che_salt":null,"bootstrap_ro\u006fm":[1],`,
				} {
					for _, words := range []int{2, 2000} {
						for _, path := range []string{"/v1/chat/completions", "/v1/completions"} {
							prompt := fmt.Sprintf(`"prompt":"%d %s"`, i, strings.Repeat("word ", words))
							if strings.HasPrefix(path, "/v1/chat") {
								prompt = fmt.Sprintf(`"messages":[{"role":"user","content":"%d %s"}]`, i, strings.Repeat("word ", words))
							}
							s := r.do("POST", path, `{"model":"sim",`+fields+prompt+`}`, "Authorization", "Bearer secret-key-0123456789",
								"X-Request-Id", "one-for-all", "X-Prefiller-Host-Port", "10.0.0.1:1")
							asks++
							if s.status != 200 || !strings.Contains(s.body, "hi") || strings.Contains(s.body, "secret") || strings.Contains(s.body, `"cached_tokens":99`) {
								t.Errorf("%s, %d words, %s: %d %s", fields, words, path, s.status, s.body)
							}
						}
					}
				}
				e.mu.Lock()
				want := asks / 2
				if !c.Alone() {
					want = asks
				}
				if e.handed != want || len(e.refused) > 0 {
					t.Errorf("%d of %d handed over, want %d; refused: %q", e.handed, asks, want, slices.Compact(e.refused))
				}
				if kept := len(e.kept); kept > 0 && c.Pins() {
					t.Errorf("%d prompts are kept", kept)
				}
				e.mu.Unlock()
				if n := r.metric("warmpath_prompt_cached_tokens_total"); n != 0 {
					t.Errorf("%v cached tokens counted; want none", n)
				}
				eventually(t, "a line each", func() bool { _, err := os.Stat(log); return err == nil && len(logged(t, log)) >= asks })
				for id, l := range logged(t, log) {
					if n, _ := l["cached_tokens"].(float64); n != 0 {
						t.Errorf("line %v: %v cached tokens", id, n)
					}
				}
			})
		}
	}
}

// TestConnectorChanges: a reload that changes the connector, takes it away or removes the decoder ends no request that has
// begun, and leaves nothing at the prefiller.
func TestConnectorChanges(t *testing.T) {
	t.Parallel()
	to := func(c pair.Connector) func(string) string {
		return func(text string) string {
			return strings.Replace(text, `connector = "nixl"`, fmt.Sprintf("connector = %q", c), 1)
		}
	}
	for what, change := range map[string]func(string) string{"lmcache": to(pair.LMCache), "mooncake": to(pair.Mooncake),
		"sidecar": to(pair.Sidecar), "no pairs": func(text string) string {
			start, rest, _ := strings.Cut(text, "[pools.disaggregation]")
			_, workers, _ := strings.Cut(rest, "[[pools.workers]]")
			return start + "[[pools.workers]]" + strings.ReplaceAll(workers, "role = \"prefill\"\n", "")
		},
		"a decoder less": func(text string) string { return text[:strings.LastIndex(text, "[[pools.workers]]")] }} {
		f := startRoles(t, 1, 2)
		var all sync.WaitGroup
		for i := range 12 {
			all.Go(func() {
				if err := f.ask(t.Context(), fmt.Sprint(what, i), 3000, i%2 == 0); err != nil {
					t.Errorf("%s: %v", what, err)
				}
			})
			if i == 6 {
				text, err := os.ReadFile(f.file)
				if err != nil {
					t.Fatal(err)
				}
				write(t, f.file, change(string(text)))
				if err := f.Reload(); err != nil {
					t.Fatal(err)
				}
			}
		}
		all.Wait()
		eventually(t, "nothing is pinned: "+what, func() bool { return f.pinned() == 0 })
	}
}
