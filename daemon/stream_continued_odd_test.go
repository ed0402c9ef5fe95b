package daemon

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/vllmsim"
)

// scripted is a worker whose answers are written down. It dies in each of them: the connection is reset.
type scripted struct {
	*httptest.Server
	mu     sync.Mutex
	bodies []string // of the POST requests
}

// asked returns the bodies that the worker got.
func (s *scripted) asked() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bodies
}

// newScript starts a worker. answer returns the status and the text of the answer to a request; whole = it does not die.
func newScript(t *testing.T, root string, answer func(path, body string) (status int, text string, whole bool)) *scripted {
	s := &scripted{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			if r.URL.Path == "/v1/models" {
				fmt.Fprintf(w, `{"object":"list","data":[{"id":"sim","object":"model","root":%q}]}`, root)
			}
			return
		}
		body, _ := io.ReadAll(r.Body)
		if r.URL.Path == "/tokenize" {
			w.WriteHeader(404)
			return
		}
		s.mu.Lock()
		s.bodies = append(s.bodies, string(body))
		s.mu.Unlock()
		status, text, whole := answer(r.URL.Path, string(body))
		kind := "text/event-stream; charset=utf-8"
		if strings.HasPrefix(text, "{") {
			kind = "application/json"
		}
		w.Header().Set("Content-Type", kind)
		w.WriteHeader(status)
		for event := range strings.SplitAfterSeq(text, "\n\n") {
			io.WriteString(w, event)
			w.(http.Flusher).Flush()
			time.Sleep(40 * time.Millisecond) // the router reads each event alone
		}
		if !whole {
			panic(http.ErrAbortHandler)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// tideBegins are the beginnings of answers, each in whole events. %s is one more event.
var tideBegins = map[string]string{
	"/v1/chat/completions": dataEvent(`{"id":"c1","object":"chat.completion.chunk","created":7,"model":"sim","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}`) +
		dataEvent(`{"id":"c1","object":"chat.completion.chunk","created":7,"model":"sim","choices":[{"index":0,"delta":{"content":"The tide comes"},"finish_reason":null}]}`) + "%s",
	"/v1/completions": dataEvent(`{"id":"t1","object":"text_completion","created":7,"model":"sim","choices":[{"index":0,"text":"The tide comes","finish_reason":null}]}`) + "%s",
	"/v1/responses": typedEvent(`"response.created","sequence_number":0,"response":{"id":"r1","created_at":7,"status":"in_progress","output":[]}`) +
		typedEvent(`"response.in_progress","sequence_number":1,"response":{"id":"r1","created_at":7,"status":"in_progress","output":[]}`) +
		typedEvent(`"response.output_item.added","sequence_number":2,"output_index":0,"item":{"id":"m1","type":"message","role":"assistant","content":[]}`) +
		typedEvent(`"response.content_part.added","sequence_number":3,"output_index":0,"content_index":0,"item_id":"m1","part":{"type":"output_text","text":""}`) +
		typedEvent(`"response.output_text.delta","sequence_number":4,"output_index":0,"content_index":0,"item_id":"m1","delta":"The tide comes"`) + "%s",
	"/v1/messages": typedEvent(`"message_start","message":{"id":"a1","type":"message","role":"assistant","content":[],"usage":{"input_tokens":9,"output_tokens":0}}`) +
		typedEvent(`"content_block_start","index":0,"content_block":{"type":"text","text":""}`) +
		typedEvent(`"content_block_delta","index":0,"delta":{"type":"text_delta","text":"The tide comes"}`) + "%s",
}

func dataEvent(text string) string { return "data: " + text + "\n\n" }

// typed is an event that has its type twice.
func typedEvent(text string) string {
	kind, _, _ := strings.Cut(text[1:], `"`)
	return "event: " + kind + "\ndata: {\"type\":" + text + "}\n\n"
}

// tideAsks are bodies of requests for these answers, but for the last brace.
var tideAsks = map[string]string{
	"/v1/chat/completions": `{"model":"sim","stream":true,"max_tokens":50,"messages":[{"role":"user","content":"Tell me of the tide."}]`,
	"/v1/completions":      `{"model":"sim","stream":true,"max_tokens":50,"prompt":"Tell me of the tide."`,
	"/v1/responses":        `{"model":"sim","stream":true,"max_output_tokens":50,"input":"Tell me of the tide."`,
	"/v1/messages":         `{"model":"sim","stream":true,"max_tokens":50,"messages":[{"role":"user","content":"Tell me of the tide."}]`,
}

// notContinued are requests, or events of their answers, for which no other worker is asked for the rest.
var notContinued = []struct{ path, what, fields, event string }{
	{"chat/completions", "two answers", `,"n":2`, ""},
	{"chat/completions", "logprobs", `,"logprobs":true`, ""},
	{"chat/completions", "top_logprobs", `,"logprobs":true,"top_logprobs":2`, ""},
	{"chat/completions", "prompt_logprobs", `,"prompt_logprobs":1`, ""},
	{"chat/completions", "JSON", `,"response_format":{"type":"json_object"}`, ""},
	{"chat/completions", "a schema", `,"response_format":{"type":"json_schema","json_schema":{"name":"x","schema":{}}}`, ""},
	{"chat/completions", "structured outputs", `,"structured_outputs":{"regex":"[a-z]+"}`, ""},
	{"chat/completions", "guided JSON", `,"guided_json":{"type":"object"}`, ""},
	{"chat/completions", "guided choice", `,"guided_choice":["a","b"]`, ""},
	{"chat/completions", "echo", `,"echo":true`, ""},
	{"chat/completions", "beam search", `,"use_beam_search":true`, ""},
	{"chat/completions", "an open prompt", `,"add_generation_prompt":false`, ""},
	{"chat/completions", "a forced tool", `,"tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":"required"`, ""},
	{"chat/completions", "a named tool", `,"tool_choice":{"type":"function","function":{"name":"f"}}`, ""},
	{"chat/completions", "a call in progress", "", dataEvent(`{"id":"c1","created":7,"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"x","type":"function","function":{"name":"f","arguments":"{"}}]}}]}`)},
	{"chat/completions", "reasoning", "", dataEvent(`{"id":"c1","created":7,"choices":[{"index":0,"delta":{"reasoning":"Hm"}}]}`)},
	{"chat/completions", "reasoning of older engines", "", dataEvent(`{"id":"c1","created":7,"choices":[{"index":0,"delta":{"reasoning_content":"Hm"}}]}`)},
	{"chat/completions", "its end", "", dataEvent(`{"id":"c1","created":7,"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`)},
	{"completions", "two answers", `,"n":2`, ""},
	{"completions", "the best of two", `,"best_of":2`, ""},
	{"completions", "logprobs", `,"logprobs":0`, ""},
	{"completions", "echo", `,"echo":true`, ""},
	{"completions", "a suffix", `,"suffix":"."`, ""},
	{"completions", "two prompts", `,"prompt":["a","b"]`, ""},
	{"completions", "a prompt of ids, and none of the text", `,"prompt":[1,2,3]`, ""},
	{"completions", "a grammar", `,"guided_grammar":"root ::= [a-z]"`, ""},
	{"completions", "another index", "", dataEvent(`{"id":"t1","created":7,"choices":[{"index":1,"text":"x"}]}`)},
	{"responses", "a schema", `,"text":{"format":{"type":"json_schema","name":"x","schema":{}}}`, ""},
	{"responses", "an earlier response", `,"previous_response_id":"resp_1"`, ""},
	{"responses", "logprobs", `,"include":["message.output_text.logprobs"]`, ""},
	{"responses", "in the background", `,"background":true`, ""},
	{"responses", "of a conversation", `,"conversation":"conv_1"`, ""},
	{"responses", "a stored prompt", `,"prompt":{"id":"pmpt_1"}`, ""},
	{"responses", "reasoning", "", typedEvent(`"response.reasoning_text.delta","sequence_number":5,"output_index":1,"delta":"Hm"`)},
	{"responses", "a call in progress", "", typedEvent(`"response.output_item.added","sequence_number":5,"output_index":1,"item":{"id":"f1","type":"function_call","name":"f"}`)},
	{"messages", "thinking", `,"thinking":{"type":"enabled","budget_tokens":1024}`, ""},
	{"messages", "a picture", `,"messages":[{"role":"user","content":[{"type":"image","source":{}}]}]`, ""},
	{"messages", "a schema", `,"output_config":{"format":{"type":"json_schema","schema":{}}}`, ""},
	{"messages", "a thought", "", typedEvent(`"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Hm"}`)},
	{"messages", "a call in progress", "", typedEvent(`"content_block_stop","index":0`) + typedEvent(`"content_block_start","index":1,"content_block":{"type":"tool_use","id":"x","name":"f","input":{}}`)},
}

// tideIDs are the parts of an error that differ between two requests.
var tideIDs = regexp.MustCompile(`req_[0-9a-zA-Z_-]+|"id": ?"[^"]*"`)

// TestNotContinued: streams that no other worker can go on with end as they do without continue, to the byte, and no
// other worker is asked.
func TestNotContinued(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"chat/completions", "completions", "responses", "messages"} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			event := ""
			workers := make([]*scripted, 2)
			for i := range workers {
				workers[i] = newScript(t, "sim", func(path, body string) (int, string, bool) {
					if strings.Contains(body, "heal") {
						return 200, `{"id":"x","choices":[{"index":0,"text":"x","finish_reason":"stop"}]}`, true
					}
					return 200, fmt.Sprintf(tideBegins[path], event), false
				})
			}
			toml := settings("roundrobin", workers[0].URL, workers[1].URL)
			off := start(t, toml, 2)
			on := start(t, strings.Replace(toml, "health_interval", "continue = 1\nhealth_interval", 1), 2)
			read := func(r *running, body string) string {
				for range 4 { // else one that has failed often gets nothing
					r.do("POST", "/v1/completions", `{"model":"sim","prompt":"heal"}`)
				}
				eventually(t, "both workers take requests", func() bool {
					all := r.describe()[0].Workers
					return all[0].State == "up" && all[1].State == "up"
				})
				s := r.do("POST", "/v1/"+path, body)
				return fmt.Sprint(s.status, s.err, tideIDs.ReplaceAllString(s.body, "ID"))
			}
			streams := func() (n int) {
				for _, body := range slices.Concat(workers[0].asked(), workers[1].asked()) {
					if strings.Contains(body, `"stream":true`) {
						n++
					}
				}
				return n
			}
			for _, o := range notContinued {
				if o.path != path {
					continue
				}
				event = o.event
				body := tideAsks["/v1/"+path] + o.fields + "}"
				if name, _, _ := strings.Cut(o.fields, ":"); name != "" && strings.Contains(tideAsks["/v1/"+path], name) {
					before, _, _ := strings.Cut(tideAsks["/v1/"+path], name) // it replaces one
					body = before + o.fields + "}"
				}
				want := read(off, body)
				n := streams()
				got := read(on, body)
				if m := streams() - n; got != want || m != 1 {
					t.Errorf("%s: %d requests, and the client has\n%s\nwithout continue\n%s", o.what, m, got, want)
				}
			}
			if n := on.metric("warmpath_continuations_total", `result="done"`); n != 0 {
				t.Errorf("%v continuations", n)
			}
			event = "" // and one of which it can be done
			n := streams()
			read(on, tideAsks["/v1/"+path]+"}")
			if m := streams() - n; m != 2 {
				t.Errorf("%d requests for a stream that can be continued; want 2: %v", m, continuations(on))
			}
		})
	}
}

// TestOddSecondWorker: what the worker that goes on may do instead. The client has the first text, then an error; what
// came is never doubled.
func TestOddSecondWorker(t *testing.T) {
	t.Parallel()
	const begun, more = "The tide comes twice in each day", " and goes"
	part := func(text string) string {
		return dataEvent(fmt.Sprintf(`{"id":"c1","created":7,"model":"sim","choices":[{"index":0,"delta":{"content":%q},"finish_reason":null}]}`, text))
	}
	const role = `{"id":"c2","created":8,"model":"sim","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}`
	const last = `{"id":"c2","created":8,"model":"sim","choices":[{"index":0,"delta":{"content":"."},"finish_reason":"stop"}]}`
	end := dataEvent(last) + dataEvent("[DONE]")
	for _, c := range []struct {
		what, root string
		status     int
		text       string
		whole      bool
		result     string
		gets       string // what the client has of it
	}{
		{"refuses", "sim", 400, `{"error":{"message":"no prefill","type":"BadRequestError","code":400}}`, true, "no_worker", ""},
		{"fails", "sim", 500, `{"error":{"message":"x","type":"InternalServerError","code":500}}`, true, "no_worker", ""},
		{"answers without a stream", "sim", 200, `{"id":"x","choices":[]}`, true, "no_worker", ""},
		{"has another root", "other", 200, dataEvent(role) + part(more) + end, true, "no_worker", ""},
		{"begins anew", "sim", 200, dataEvent(role) + part("The tide comes") + part(" twice in each day") + part(more) + end, true, "mismatch", ""},
		{"dies before its text", "sim", 200, dataEvent(role), false, "no_worker", ""},
		{"dies in its text", "sim", 200, dataEvent(role) + part(more), false, "broken", more},
		{"dies in an event", "sim", 200, dataEvent(role) + part(more) + "data: {\"id\":", false, "broken", more},
		{"thinks", "sim", 200, dataEvent(role) + dataEvent(`{"id":"c2","choices":[{"index":0,"delta":{"reasoning":"Hm"}}]}`) + end, true, "mismatch", ""},
		{"fails in its text", "sim", 200, dataEvent(role) + part(more) + dataEvent(`{"error":{"message":"EngineCore encountered an issue","type":"InternalServerError","code":500}}`) + dataEvent("[DONE]"), true, "broken", more},
		{"speaks no JSON", "sim", 200, dataEvent(role) + dataEvent("tide"), true, "mismatch", ""},
		{"goes on", "sim", 200, dataEvent(role) + part(more) + end, true, "done", more + "."},
	} {
		t.Run(c.what, func(t *testing.T) {
			t.Parallel()
			first := newScript(t, "sim", func(string, string) (int, string, bool) {
				return 200, fmt.Sprintf(tideBegins["/v1/chat/completions"], part(strings.TrimPrefix(begun, "The tide comes"))), false
			})
			second := newScript(t, c.root, func(string, string) (int, string, bool) { return c.status, c.text, c.whole })
			toml := settings("roundrobin", first.URL, second.URL)
			r := start(t, strings.Replace(toml, "health_interval", "continue = 1\nhealth_interval", 1), 2)
			var s gotten
			var err error
			for len(first.asked()) == 0 { // the second one may come first
				s, err = readGotten("http://"+r.Addr(), "/v1/chat/completions", tideAsks["/v1/chat/completions"]+"}", nil)
			}
			if s.text != begun+c.gets || s.roles != 1 || (err == nil) != (c.result == "done") || len(s.ids) != 1 {
				t.Errorf("%+v, %v; want the text %q", s, err, begun+c.gets)
			}
			if c.result != "" && r.metric("warmpath_continuations_total", fmt.Sprintf("result=%q", c.result)) != 1 {
				t.Errorf("not counted as %s: %v", c.result, continuations(r))
			}
			if c.what == "has another root" && len(second.asked()) > 1 {
				t.Error("a worker of another model is asked for the rest")
			}
			eventually(t, "no request at a worker", func() bool { return r.metric("warmpath_worker_in_flight") == 0 })
			if n := r.metric("warmpath_account_leaks_total"); n != 0 {
				t.Errorf("%v leaks", n)
			}
		})
	}
}

// continuations returns the counters of a pool's continuations that are not zero.
func continuations(r *running) (lines []string) {
	for line := range strings.Lines(do(r.t, "GET", "http://"+r.AdminAddr()+"/metrics", "").body) {
		if strings.HasPrefix(line, "warmpath_continuations_total") && !strings.HasSuffix(line, " 0\n") {
			lines = append(lines, line)
		}
	}
	return lines
}

// TestContinuedTwice: with continue = 2 a third worker goes on where the second one breaks off, and with 1 none does.
func TestContinuedTwice(t *testing.T) {
	t.Parallel()
	for often, whole := range map[int]bool{1: false, 2: true} {
		const path = "/v1/completions"
		var mu sync.Mutex
		var prompts []string
		answer := func(_, body string) (int, string, bool) {
			mu.Lock()
			defer mu.Unlock()
			prompts = append(prompts, body)
			n := len(prompts)
			text := dataEvent(fmt.Sprintf(`{"id":"t%d","created":%d,"choices":[{"index":0,"text":"part %d, ","finish_reason":null}]}`, n, n, n))
			if n == 3 {
				return 200, text + dataEvent(`{"id":"t3","created":3,"choices":[{"index":0,"text":"end","finish_reason":"stop"}]}`) +
					dataEvent("[DONE]"), true
			}
			return 200, text, false
		}
		var urls []string
		for range 3 {
			urls = append(urls, newScript(t, "sim", answer).URL)
		}
		r := start(t, strings.Replace(settings("roundrobin", urls...), "health_interval",
			fmt.Sprintf("continue = %d\nhealth_interval", often), 1), 3)
		got, err := readGotten("http://"+r.Addr(), path, tideAsks[path]+"}", nil)
		want := "part 1, part 2, "
		if whole {
			want += "part 3, end"
		}
		if got.text != want || (err == nil) != whole || len(got.ids) != 1 || len(prompts) != often+1 {
			t.Errorf("continue = %d: %q, %v, of %d workers; want %q", often, got.text, err, len(prompts), want)
		}
		if whole && !strings.Contains(prompts[2], `"prompt":"Tell me of the tide.part 1, part 2, "`) {
			t.Errorf("the third worker is asked %s", prompts[2])
		}
	}
}

// TestLethalStream: a request that has ended two engines in the midst of its stream gets to no third one.
func TestLethalStream(t *testing.T) {
	t.Parallel()
	for _, often := range []string{"", "continue = 2\n"} {
		workers := sims(t, 3, vllmsim.Config{ReplyTokens: 4000, Speed: 1})
		r := start(t, strings.Replace(settings("roundrobin", workers.URLs()...), "health_interval", often+"health_interval", 1), 3)
		at := continuable[1]
		body, killed := at.body("What is the tide?", 150), map[int]bool{}
		ask := func() error {
			length := 0
			_, err := readGotten("http://"+r.Addr(), at.path, body, func(s *gotten) {
				if len(s.text) < length+50 || len(killed) == 2 {
					return
				}
				for i, w := range r.describe()[0].Workers {
					if w.InFlight > 0 && !killed[i] { // none while the stream moves
						_ = workers[i].Kill()
						killed[i], length = true, len(s.text)+50
					}
				}
			})
			return err
		}
		for len(killed) < 2 {
			if err := ask(); err == nil {
				t.Fatalf("%q: a stream survives the end of its worker", often)
			}
		}
		if err := ask(); err == nil || !strings.Contains(err.Error(), "500 Internal Server Error") {
			t.Errorf("%q: after two engines: %v; want 500", often, err)
		}
		if often != "" && r.metric("warmpath_continuations_total", `result="lethal"`) != 1 {
			t.Errorf("%q: the second death is not counted as lethal", often)
		}
	}
}
