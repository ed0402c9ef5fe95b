package daemon

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/warmpath/warmpath/daemon/lab/otlptest"
)

// speaker is a worker that lists models, notes what it is asked, and answers what a test says.
type speaker struct {
	url string

	mu     sync.Mutex // guards all below
	asked  []string   // method, path and body
	header http.Header
	answer func(rw http.ResponseWriter, body string)
}

// newSpeaker starts one whose list of models has these entries.
func newSpeaker(t *testing.T, entries ...string) *speaker {
	t.Helper()
	s := &speaker{}
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/health", "/metrics", "/kv_event_sources", "/weight_info":
			return
		case "/v1/models":
			fmt.Fprintf(rw, `{"object":"list","data":[%s]}`, strings.Join(entries, ","))
			return
		}
		b, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		s.asked, s.header = append(s.asked, r.Method+" "+r.RequestURI+" "+string(b)), r.Header
		answer := s.answer
		s.mu.Unlock()
		answer(rw, string(b))
	}))
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

// says makes the worker answer so from now on.
func (s *speaker) says(status int, kind string, pieces ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = func(rw http.ResponseWriter, _ string) {
		rw.Header().Set("Content-Type", kind)
		rw.Header().Set("X-Served-Model", "the-cat")
		rw.Header().Set("Location", "/v1/models/the-cat")
		if len(pieces) == 1 {
			rw.Header().Set("Content-Length", fmt.Sprint(len(pieces[0])))
		}
		rw.WriteHeader(status)
		for _, p := range pieces {
			_, _ = io.WriteString(rw, p)
			rw.(http.Flusher).Flush()
		}
	}
}

// last returns what the worker was asked since the last call, which is one request.
func (s *speaker) last(t *testing.T) string {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	asked := s.asked
	s.asked = nil
	if len(asked) != 1 {
		t.Fatalf("the worker was asked %.300q", asked)
	}
	return asked[0]
}

// petIsCat is the alias of most tests.
const petIsCat = "[[models]]\nname = \"pet\"\nto = [{ model = \"the-cat\" }]\n"

const petForm = "--b\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\npet\r\n--b\r\n" +
	"Content-Disposition: form-data; name=\"file\"; filename=\"pet.wav\"\r\n\r\npet pet\r\n--b--\r\n"

// TestNamesInEveryDialect: the worker gets the target in place of the alias, the client the alias in place of the
// target, and all other bytes stay.
func TestNamesInEveryDialect(t *testing.T) {
	w := newSpeaker(t, `{"id":"the-cat"},{"id":"dog"}`)
	r := start(t, settings("roundrobin", w.url)+petIsCat, 1)
	const chat = `{"messages":[{"role":"user","content":"\"model\":\"pet\""}] , "model" : "pet"}`
	for _, c := range []struct {
		path, body, kind string
		status           int
		answer           string // with NAME where the model stands
	}{
		{path: "/v1/chat/completions", body: chat, answer: `{"model":"NAME","choices":[{"message":{"content":"the-cat \"model\":\"the-cat\""}}]}`},
		{path: "/v1/completions", body: `{"model":"pet","prompt":"pet"}`, answer: `{"model" :"NAME","choices":[{"text":"the-cat"}]}`},
		{path: "/v1/messages", body: chat, answer: `{"type":"message","model":"NAME","content":[{"type":"text","text":"the-cat"}],"stop_reason":"end_turn"}`},
		{path: "/v1/messages/count_tokens", body: chat, answer: `{"input_tokens":1}`},
		{path: "/v1/responses", body: `{"model":"pet","input":"pet"}`, answer: `{"id":"resp_1","object":"response","model":"NAME","output":[]}`},
		{path: "/v1/embeddings", body: `{"model":"pet","input":"pet"}`, answer: `{"data":[],"model":"NAME"}`},
		{path: "/pooling", body: `{"model":"pet","input":"pet"}`, answer: `{"data":[],"model":"NAME"}`},
		{path: "/score", body: `{"model":"pet","text_1":"a","text_2":"b"}`, answer: `{"data":[],"model":"NAME"}`},
		{path: "/v1/rerank", body: `{"model":"pet","query":"a","documents":["b"]}`, answer: `{"results":[],"model":"NAME"}`},
		{path: "/tokenize", body: `{"model":"pet","prompt":"pet"}`, answer: `{"count":1}`},
		{path: "/detokenize", body: `{"model":"pet","tokens":[1]}`, answer: `{"prompt":"the-cat"}`},
		{path: "/v1/none/such", body: `{"model":"pet","x":1}`, answer: `{"model":"NAME"}`},
		{path: "/invocations", body: chat, answer: `{"model":"NAME","choices":[]}`},
		{path: "/v1/audio/transcriptions", body: petForm, kind: "multipart/form-data; boundary=b", answer: `{"text":"the-cat","model":"NAME"}`},
		{path: "/v1/chat/completions", body: chat, status: 404, answer: "{\"error\":{\"message\":\"The model `NAME` does not exist.\"}}"},
		{path: "/v1/chat/completions", body: chat, status: 400, answer: `{"error":{"message":"'input': {'model': 'NAME'}"}}`},
		{path: "/v1/messages", body: chat, status: 404, answer: `{"type":"error","error":{"type":"not_found_error","message":"model: NAME"}}`},
	} {
		kind, status := c.kind, c.status
		if kind == "" {
			kind = "application/json"
		}
		if status == 0 {
			status = 200
		}
		w.says(status, "application/json", strings.ReplaceAll(c.answer, "NAME", "the-cat"))
		got := r.do("POST", c.path, c.body, "Content-Type", kind)
		sent := strings.NewReplacer(`"model":"pet"`, `"model":"the-cat"`, `"model" : "pet"`, `"model" : "the-cat"`,
			"\r\n\r\npet\r\n", "\r\n\r\nthe-cat\r\n").Replace(c.body)
		if asked := w.last(t); asked != "POST "+c.path+" "+sent {
			t.Errorf("%s: the worker got %s, want %s", c.path, asked, sent)
		}
		if want := strings.ReplaceAll(c.answer, "NAME", "pet"); got.status != status || got.body != want {
			t.Errorf("%s: %d %s, want %s", c.path, got.status, got.body, want)
		}
		for name, values := range got.header {
			if strings.Contains(strings.Join(values, " "), "the-cat") != (name == "X-Warmpath-Model") {
				t.Errorf("%s: %s: %v", c.path, name, values)
			}
		}
		w.says(status, "application/json", strings.ReplaceAll(c.answer, "NAME", "dog"))
		plain := strings.ReplaceAll(c.body, "pet", "dog")
		got = r.do("POST", c.path, plain, "Content-Type", kind)
		if asked := w.last(t); asked != "POST "+c.path+" "+plain || got.body != strings.ReplaceAll(c.answer, "NAME", "dog") ||
			got.header.Get("X-Served-Model") != "the-cat" {
			t.Errorf("%s without an alias: the worker got %s, the client %s", c.path, asked, got.body)
		}
	}
}

// TestNamesInStreams: events may be cut at any byte.
func TestNamesInStreams(t *testing.T) {
	w := newSpeaker(t, `{"id":"the-cat"}`)
	r := start(t, settings("roundrobin", w.url)+petIsCat, 1)
	for _, c := range []struct{ path, events string }{
		{"/v1/chat/completions", "data: {\"model\":\"NAME\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"the-cat\"}}]}\n\ndata: [DONE]\n\ndata: {\"model\":\"NAME\",\"usage\":{}}\n\n"},
		{"/v1/responses", "event: response.created\ndata: {\"type\":\"response.created\",\"response\":{\"id\":\"resp_2\",\"model\":\"NAME\"}}\n\n" +
			"event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"delta\":\"x\"}\n\nevent: response.completed\ndata: {\"type\":\"response.completed\",\ndata: \"response\":{\"id\":\"resp_2\",\"model\":\"NAME\"}}\n\n"},
		{"/v1/messages", "event: message_start\r\ndata: {\"type\":\"message_start\",\"message\":{\"model\":\"NAME\"}}\r\n\r\n" +
			"event: content_block_delta\r\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"the-cat\"}}\r\n\r\nevent: message_stop\r\ndata: {\"type\":\"message_stop\"}\r\n\r\n"},
	} {
		from, want := strings.ReplaceAll(c.events, "NAME", "the-cat"), strings.ReplaceAll(c.events, "NAME", "pet")
		for cut := range len(from) {
			pieces := []string{from[:cut], from[cut:]}
			if cut == 0 {
				pieces = strings.Split(from, "")
			}
			w.says(200, "text/event-stream", pieces...)
			got := r.do("POST", c.path, `{"model":"pet","stream":true,"messages":[],"input":"x"}`)
			if w.last(t); got.body != want || got.err != nil {
				t.Fatalf("%s cut at %d: %s %v", c.path, cut, got.body, got.err)
			}
		}
	}
}

// TestNamesInBodiesOfEverySize: packed bodies, bodies of which the end is passed on as it comes, and kept ones.
func TestNamesInBodiesOfEverySize(t *testing.T) {
	w := newSpeaker(t, `{"id":"the-cat"}`)
	r := start(t, withServer(settings("roundrobin", w.url), "buffer_body_bytes = 65536\nmax_body_bytes = 1_000_000")+
		strings.Replace(petIsCat, "pet", "two", 1), 1)
	long := strings.Repeat("words ", 40_000)
	for what, c := range map[string]struct{ body, coding, sent string }{
		"gzip":                     {gzipped(`{"model":"two"}`), "gzip", `{"model":"the-cat"}`},
		"zstd":                     {zstandard, "zstd", `{"model":"the-cat"}`},
		"a tail that is passed on": {`{"model":"two","prompt":"` + long + `"}`, "", `{"model":"the-cat","prompt":"` + long + `"}`},
		"kept until the model":     {`{"prompt":"` + long + `","model":"two" }`, "", `{"prompt":"` + long + `","model":"the-cat" }`},
		"both":                     {`{"prompt":"` + long + `","model":"two","x":"` + long + `"}`, "", `{"prompt":"` + long + `","model":"the-cat","x":"` + long + `"}`},
		"packed and long":          {gzipped(`{"model":"two","prompt":"` + long + `"}`), "gzip", `{"model":"the-cat","prompt":"` + long + `"}`},
		"an escaped key":           {`{"model":"x","mod\u0065l":"two"}`, "", `{"model":"the-cat"}`},
		"twice":                    {`{"model":"two","model":"t\u0077o"}`, "", `{"model":"the-cat"}`},
	} {
		w.says(200, "application/json", `{"model":"the-cat"}`)
		header := []string{}
		if c.coding != "" {
			header = []string{"Content-Encoding", c.coding}
		}
		got := r.do("POST", "/v1/completions", c.body, header...)
		if asked := w.last(t); asked != "POST /v1/completions "+c.sent || got.body != `{"model":"two"}` {
			t.Errorf("%s: %d %s, the worker got %d bytes, want %d: %.60s", what, got.status, got.body, len(asked), len(c.sent), asked)
		}
	}
}

// TestNamesOfStoredResponses: a response is gone on with at its model, and whoever reads it gets the alias.
func TestNamesOfStoredResponses(t *testing.T) {
	w := newSpeaker(t, `{"id":"the-cat"},{"id":"the-dog"}`)
	r := start(t, settings("roundrobin", w.url)+strings.Replace(petIsCat, "= [", `= [{ model = "the-dog" }, `, 1), 1)
	models := map[string]int{}
	for i := range 12 {
		id := fmt.Sprint("resp_", i)
		w.mu.Lock()
		w.answer = func(rw http.ResponseWriter, body string) {
			model := "the-cat"
			if strings.Contains(body, "the-dog") {
				model = "the-dog"
			}
			rw.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(rw, `{"id":%q,"object":"response","model":%q,"output":[]}`, id, model)
		}
		w.mu.Unlock()
		first := r.do("POST", "/v1/responses", fmt.Sprintf(`{"model":"pet","input":"%d"}`, i))
		model := first.header.Get("X-Warmpath-Model")
		models[model]++
		w.last(t)
		for range 3 {
			r.do("POST", "/v1/responses", fmt.Sprintf(`{"model":"pet","input":"more","previous_response_id":%q}`, id))
			if asked := w.last(t); !strings.Contains(asked, `"model":"`+model+`"`) {
				t.Errorf("%s of %s went on with %s", id, model, asked)
			}
		}
		for _, c := range [][2]string{{"GET", ""}, {"GET", "?stream=true"}, {"POST", "/cancel"}, {"GET", "/input_items"}} {
			kind, answer := "application/json", `{"id":"`+id+`","model":"`+model+`"}`
			if c[1] == "?stream=true" {
				kind, answer = "text/event-stream", `data: {"response":`+answer+"}\n\n"
			}
			w.says(200, kind, answer)
			got := r.do(c[0], "/v1/responses/"+id+c[1], "")
			w.last(t)
			if got.body != strings.ReplaceAll(answer, model, "pet") || got.header.Get("X-Warmpath-Model") != model {
				t.Errorf("%v of %s by %s: %d %s %v", c, id, model, got.status, got.body, got.header)
			}
		}
	}
	if len(models) != 2 {
		t.Errorf("all at one model: %v", models)
	}
}

// TestNamesInTheRecords: log, decision and span name alias and target.
func TestNamesInTheRecords(t *testing.T) {
	t.Parallel()
	c, stop := otlptest.Start()
	t.Cleanup(stop)
	w := newSpeaker(t, `{"id":"the-cat"}`)
	w.says(200, "application/json", `{"model":"the-cat"}`)
	log := filepath.Join(t.TempDir(), "access.log")
	r := start(t, withServer(settings("roundrobin", w.url), fmt.Sprintf("access_log = %q", log))+petIsCat+
		fmt.Sprintf("[tracing]\nendpoint = %q\n", c.URL), 1)
	id := r.do("POST", "/v1/completions", `{"model":"pet","prompt":"x"}`).header.Get("X-Request-Id")
	const both = `"model":"the-cat","alias":"pet"`
	eventually(t, "a line in the log", func() bool {
		b, _ := os.ReadFile(log)
		return bytes.Contains(b, []byte(both))
	})
	if got := r.admin("GET", "/api/v1/decisions/"+id, ""); !strings.Contains(got.body, `"model":"the-cat"`) ||
		!strings.Contains(got.body, `"alias":"pet"`) {
		t.Errorf("the decision is %s", got.body)
	}
	r.do("POST", "/v1/completions", `{"model":"the-cat","prompt":"x"}`)
	eventually(t, "another line", func() bool {
		b, _ := os.ReadFile(log)
		return bytes.Count(b, []byte("\n")) == 2 && bytes.Count(b, []byte(`"alias"`)) == 1
	})
	if err := r.stop(); err != nil {
		t.Error(err)
	}
	var spans []string
	for _, s := range c.Spans() {
		spans = append(spans, fmt.Sprintln(s.Attributes["gen_ai.response.model"], s.Attributes["gen_ai.request.model"], s.Attributes["warmpath.alias"]))
	}
	if slices.Sort(spans); !slices.Equal(spans, []string{"the-cat pet pet\n", "the-cat the-cat <nil>\n"}) {
		t.Errorf("the spans' models and aliases: %q", spans)
	}
}

// TestHiddenNamesAreInNoError: an error that lists what the workers serve leaves out what no list shows.
func TestHiddenNamesAreInNoError(t *testing.T) {
	t.Parallel()
	w := newSpeaker(t, `{"id":"the-cat"},{"id":"dog"}`)
	r := start(t, settings("roundrobin", w.url)+petIsCat+"[[models]]\nname = \"the-cat\"\nhidden = true\n", 1)
	got := r.do("POST", "/v1/completions", `{"model":"bird","prompt":"x"}`)
	if got.status != 404 || strings.Contains(got.body, "the-cat") || !strings.Contains(got.body, "dog") {
		t.Errorf("%d %s", got.status, got.body)
	}
}
