package resume

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/daemon/request/prompt"
)

// whatKind are the bodies that a fuzzer's number selects.
var whatKind = []prompt.Kind{prompt.Chat, prompt.Completion, prompt.Messages, prompt.Responses}

// begun feeds a draft with the first n events of an answer with these tokens.
func begun(t *testing.T, kind prompt.Kind, body string, n int, tokens ...string) *Draft {
	t.Helper()
	d := New(kind, []byte(body))
	if d == nil {
		t.Fatalf("%s cannot be continued", body)
	}
	e := engine{name: "first", prompt: 10, tokens: tokens, every: true, ids: strings.Contains(body, "return_token_ids")}
	for _, event := range e.stream(kind, true)[:n] {
		d.Feed([]byte(event))
	}
	return d
}

// TestKept: what of the first request the second one has: all, but for the bounds, which are lowered.
func TestKept(t *testing.T) {
	const kept = `,"seed":7,"logit_bias":{"5":-100},"temperature":0.5,"top_p":0.9,"stop":["END"],"user":"u","cache_salt":"s",` +
		`"presence_penalty":1.5,"priority":3,"min_p":0.1,"stop_token_ids":[3],"ignore_eos":true,"bad_words":["x"]`
	for what, c := range map[string]struct {
		kind   prompt.Kind
		events int
		body   string
		want   string // fields that are others
	}{
		"chat": {prompt.Chat, 3, `{"model":"m","stream":true,"max_completion_tokens":9,"min_tokens":5,"messages":[{"role":"user","content":"hi"}]` + kept + `}`,
			`{"max_completion_tokens":7,"min_tokens":3,"add_generation_prompt":false,"continue_final_message":true,` +
				`"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"one two "}]}`},
		"fewer tokens than came": {prompt.Chat, 3, `{"stream":true,"max_tokens":9,"min_tokens":1,"messages":[{"role":"user","content":"hi"}]` + kept + `}`,
			`{"max_tokens":7,"min_tokens":0,"add_generation_prompt":false,"continue_final_message":true,` +
				`"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"one two "}]}`},
		"completion": {prompt.Completion, 2, `{"stream":true,"max_tokens":9,"prompt":"hi "` + kept + `}`,
			`{"max_tokens":7,"prompt":"hi one two "}`},
		"completion by ids": {prompt.Completion, 2, `{"stream":true,"max_tokens":9,"prompt":"hi","return_token_ids":true,"seed":7}`,
			`{"max_tokens":7,"prompt":[1,2,3,111,116]}`},
		"completion of ids": {prompt.Completion, 2, `{"stream":true,"max_tokens":9,"prompt":[8, 9],"return_token_ids":true}`,
			`{"max_tokens":7,"prompt":[1,2,3,111,116]}`},
		"responses": {prompt.Responses, 6, `{"stream":true,"max_output_tokens":9,"input":[{"role":"user","content":"hi"}],"seed":7}`,
			`{"max_output_tokens":7,"input":[{"role":"user","content":"hi"},{"type":"message","role":"assistant","status":"in_progress",` +
				`"id":"msg_first","content":[{"type":"output_text","annotations":[],"text":"one two "}]}]}`},
		"messages": {prompt.Messages, 4, `{"stream":true,"max_tokens":9,"system":"be","temperature":0.5,"top_k":4,"metadata":{"user_id":"u"},` +
			`"stop_sequences":["END"],"tools":[{"name":"f","description":"d","input_schema":{"type":"object"}}],"tool_choice":{"type":"auto"},` +
			`"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":[{"type":"text","text":"so"},{"type":"tool_use","id":"c","name":"f","input":{"a":1}}]},` +
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":[{"type":"text","text":"1"},{"type":"text","text":"2"}]},{"type":"text","text":"go"}]}]}`,
			`{"max_tokens":7,"stop":["END"],"stop_sequences":null,"system":null,"metadata":null,"tool_choice":"auto","add_generation_prompt":false,` +
				`"continue_final_message":true,"tools":[{"type":"function","function":{"name":"f","description":"d","parameters":{"type":"object"}}}],` +
				`"messages":[{"role":"system","content":"be"},{"role":"user","content":"hi"},` +
				`{"role":"assistant","content":"so","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}}]},` +
				`{"role":"tool","content":"1\n2","tool_call_id":"c"},{"role":"user","content":"go"},{"role":"assistant","content":"one two "}]}`},
	} {
		t.Run(what, func(t *testing.T) {
			ask, ok := begun(t, c.kind, c.body, c.events, "one ", "two ", "three ", "four").Ask()
			if !ok {
				t.Fatal("nobody is asked for the rest")
			}
			var got, want, changed map[string]any
			for text, to := range map[string]*map[string]any{string(ask.Body): &got, c.body: &want, c.want: &changed} {
				if err := json.Unmarshal([]byte(text), to); err != nil {
					t.Fatal(err, text)
				}
			}
			maps.Copy(want, changed)
			if ask.Kind != prompt.Responses {
				want["stream_options"] = map[string]any{"include_usage": true, "continuous_usage_stats": true}
			}
			maps.DeleteFunc(want, func(_ string, v any) bool { return v == nil })
			for _, name := range slices.Sorted(maps.Keys(want)) {
				a, _ := json.Marshal(got[name])
				b, _ := json.Marshal(want[name])
				if string(a) != string(b) {
					t.Errorf("%s is %s; want %s", name, a, b)
				}
			}
			if len(got) != len(want) {
				t.Errorf("%s has %d fields; want %d", ask.Body, len(got), len(want))
			}
		})
	}
}

// TestNoMoreTokens: who has as many tokens as were asked for is asked of nobody.
func TestNoMoreTokens(t *testing.T) {
	d := begun(t, prompt.Chat, `{"stream":true,"max_tokens":2,"messages":[{"role":"user","content":"hi"}]}`, 3, "one ", "two ", "three")
	if r, ok := d.Ask(); ok {
		t.Errorf("asks %s", r.Body)
	}
}

// TestStops: a stop string of which each worker wrote a part ends the answer, and one that is not completed is text.
func TestStops(t *testing.T) {
	for what, c := range map[string]struct {
		stop          string // in JSON
		with          bool
		first, second []string
		text          string
		cut           bool // the second stream is not read to its end
	}{
		"in both, kept":         {`"END"`, true, []string{"a ", "E"}, []string{"N", "D", " b"}, "a END", true},
		"in both, not kept":     {`["END"]`, false, []string{"a ", "E"}, []string{"N", "D", " b"}, "a E", true},
		"in one event":          {`"END"`, true, []string{"a E"}, []string{"ND b", "c"}, "a END", true},
		"almost":                {`"END"`, true, []string{"a E"}, []string{"N", "E", "b"}, "a ENEb", false},
		"of two the second":     {`["EAST","END"]`, true, []string{"a E"}, []string{"N", "D"}, "a END", true},
		"an end within it":      {`"END"`, true, []string{"a E"}, []string{"N"}, "a EN", false},
		"it overlaps itself":    {`"aab"`, true, []string{"x", "aa"}, []string{"ab", "c"}, "xaaab", true},
		"it begins in the text": {`"é!"`, true, []string{"x", "é"}, []string{"!", "c"}, "xé!", true},
		"nothing of it":         {`"END"`, true, []string{"a b"}, []string{"END", "c"}, "a bENDc", false}, // the engine's own affair
	} {
		for _, kind := range []prompt.Kind{prompt.Chat, prompt.Completion, prompt.Messages} {
			if kind == prompt.Messages && c.with {
				continue // it has no such field
			}
			body := strings.Replace(fmt.Sprintf(bodies[kind], 90), `"stream":true`,
				fmt.Sprintf(`"stream":true,"%s":%s,"include_stop_str_in_output":%v`,
					map[bool]string{true: "stop_sequences", false: "stop"}[kind == prompt.Messages], c.stop, c.with), 1)
			events := map[prompt.Kind]int{prompt.Chat: 1, prompt.Completion: 0, prompt.Messages: 2}[kind] + len(c.first)
			d := begun(t, kind, body, events, append(slices.Clone(c.first), "never")...)
			ask, ok := d.Ask()
			if !ok {
				t.Fatalf("%s: %v: nobody is asked", what, kind)
			}
			second := engine{name: "second", prompt: 12, tokens: c.second, every: true}
			got, err := io.ReadAll(d.Join(strings.NewReader(strings.Join(second.stream(ask.Kind, true), ""))))
			if err != nil {
				t.Fatalf("%s: %v: %v", what, kind, err)
			}
			text, reason := strings.Join(c.first, ""), ""
			for event := range strings.SplitSeq(string(got), "\n\n") {
				data, ok := dataOf([]byte(event))
				if !ok || len(data) == 0 || string(data) == "[DONE]" {
					continue
				}
				var e struct {
					Delta struct {
						Text string
						Stop any `json:"stop_reason"`
					}
					Choices []struct {
						Text   string
						Delta  struct{ Content string }
						Finish string `json:"finish_reason"`
					}
				}
				if err := json.Unmarshal(data, &e); err != nil {
					t.Fatalf("%s: %v: %v: %s", what, kind, err, data)
				}
				text += e.Delta.Text
				if e.Delta.Stop != nil {
					reason = fmt.Sprint(e.Delta.Stop)
				}
				for _, c := range e.Choices {
					text += c.Text + c.Delta.Content
					reason += c.Finish
				}
			}
			if text != c.text || strings.HasPrefix(reason, "stop") != c.cut {
				t.Errorf("%s: %v: %q, which ends by %q; want %q", what, kind, text, reason, c.text)
			}
		}
	}
}

// FuzzAsk: whatever a request and the beginning of its answer are, what another worker is asked for is JSON, and the
// text in it is what the client has. In pieces of any length the beginning is read alike.
func FuzzAsk(f *testing.F) {
	for i, kind := range whatKind {
		e := engine{name: "first", prompt: 3, tokens: []string{"a ", "é\n", "b"}, ids: true}
		f.Add(i, fmt.Sprintf(bodies[kind], 9), strings.Join(e.stream(kind, true), ""), 7)
	}
	f.Add(2, `{"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"x"}]}],"tools":[{"name":"f"}]}`, "", 1)
	f.Fuzz(func(t *testing.T, which int, body, stream string, piece int) {
		kind := whatKind[uint(which)%uint(len(whatKind))]
		if !json.Valid([]byte(body)) { // the router has read it
			return
		}
		d, whole := New(kind, []byte(body)), New(kind, []byte(body))
		if d == nil {
			return
		}
		whole.Feed([]byte(stream))
		for rest := stream; rest != ""; {
			n := min(len(rest), max(1, piece))
			d.Feed([]byte(rest[:n]))
			rest = rest[n:]
		}
		if d.Text() != whole.Text() || d.Over() != whole.Over() {
			t.Fatalf("in pieces of %d: %q, %v; at once: %q, %v", piece, d.Text(), d.Over(), whole.Text(), whole.Over())
		}
		ask, ok := d.Ask()
		if !ok {
			return
		}
		if !json.Valid(ask.Body) {
			t.Fatalf("asks %s", ask.Body)
		}
		if text, _ := json.Marshal(d.Text()); d.Text() != "" && !d.byIDs() && kind != prompt.Completion {
			var compact struct {
				Messages, Input []struct{ Content json.RawMessage }
			}
			if err := json.Unmarshal(ask.Body, &compact); err == nil && !strings.Contains(string(ask.Body), string(d.text)) {
				t.Fatalf("the text %s is not in %s", text, ask.Body)
			}
		}
	})
}

// FuzzJoin: whatever the second worker sends, what the client gets of it is events, and their data JSON.
func FuzzJoin(f *testing.F) {
	for i, kind := range whatKind {
		second := engine{name: "second", prompt: 4, tokens: []string{"END", "c ", "\u2028"}, every: true}
		if kind == prompt.Messages {
			kind = prompt.Chat
		}
		f.Add(i, 1, strings.Join(second.stream(kind, true), ""))
	}
	f.Add(2, 3, `data: {"choices":[{"delta":{"tool_calls":[{"id":"x","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`+"\n\ndata: [DONE]\n\n")
	f.Fuzz(func(t *testing.T, which, events int, stream string) {
		kind := whatKind[uint(which)%uint(len(whatKind))]
		body := strings.Replace(fmt.Sprintf(bodies[kind], 99), `"stream":true`,
			`"stream":true,"stop":["bEND"],"stop_sequences":["bEND"]`, 1)
		first := engine{name: "first", prompt: 3, tokens: []string{"a ", "b", "b"}}.stream(kind, false)
		d := New(kind, []byte(body))
		d.Feed([]byte(strings.Join(first[:uint(events)%uint(len(first))], "")))
		if _, ok := d.Ask(); !ok {
			return
		}
		got, err := io.ReadAll(d.Join(strings.NewReader(stream)))
		if err != nil && !errors.Is(err, ErrOther) && err != io.ErrUnexpectedEOF {
			t.Fatal(err)
		}
		if !strings.Contains(stream, "data:") || strings.Contains(stream, "\r") {
			return
		}
		for event := range strings.SplitSeq(string(got), "\n\n") {
			data, ok := dataOf([]byte(event))
			if !ok || len(data) > 0 && string(data) != "[DONE]" && !json.Valid(data) {
				t.Fatalf("the client gets %q of %q", event, stream)
			}
		}
	})
}
