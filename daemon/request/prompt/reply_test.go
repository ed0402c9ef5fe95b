package prompt

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func feed(kind Kind, sse string) *Reply {
	r := NewReply(kind, true, 0)
	r.Feed([]byte(sse))
	return r
}

// collected is all that a reply came to, as text.
func collected(r *Reply) string {
	ok, complete := r.Finish()
	out := fmt.Sprintf("%v %v %v %v %s %v", ok, complete, r.Clean(), r.Failed(), r.FinishReason(), r.Usage())
	for _, a := range r.t.answers.list {
		out += fmt.Sprintf("|%q %v %s", a.text, a.tokens, a.finish)
		for _, c := range a.calls {
			out += fmt.Sprintf(" %q(%q)", c.name, c.arguments)
		}
	}
	return out
}

func TestRecordedStreams(t *testing.T) {
	f := func(file string, kind Kind, want string) {
		t.Helper()
		b, err := os.ReadFile(filepath.Join("testdata", file))
		if err != nil {
			t.Fatal(err)
		}
		if got := collected(feed(kind, string(b))); got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", file, got, want)
		}
		crlf := strings.ReplaceAll(string(b), "\n", "\r\n")
		if got := collected(feed(kind, crlf)); got != want {
			t.Errorf("%s with CRLF:\ngot  %s\nwant %s", file, got, want)
		}
		one := NewReply(kind, true, 0)
		b = append([]byte("\xEF\xBB\xBF"), b...)
		if got := collected(feed(kind, string(b))); got != want {
			t.Errorf("%s with a mark before it:\ngot  %s\nwant %s", file, got, want)
		}
		for i := range b {
			one.Feed(b[i : i+1])
		}
		if got := collected(one); got != want {
			t.Errorf("%s byte by byte:\ngot  %s\nwant %s", file, got, want)
		}
	}
	chat := func(known bool) string {
		return fmt.Sprintf(`true true true false length {223 3 0 %v true}|"\n\n\n" [] length`, known)
	}
	text := func(known bool) string {
		return fmt.Sprintf(`true true true false length {4 3 0 %v true}|"lololo" [388 388 388] length`, known)
	}
	for version, known := range map[string]bool{"0.32.0": true, "0.19.1": false, "0.11.1": false} {
		f("vllm-"+version+"-chat.sse", Chat, chat(known))
		f("vllm-"+version+"-completion.sse", Completion, text(known))
	}
	f("vllm-0.32.0-responses.sse", Responses, `true true true false length {19 2 0 true true}|"\n\n" [] length`)
	f("vllm-0.19.1-responses.sse", Responses, `true true true false length {19 2 0 true true}|"\n\n" [] length`)
	f("vllm-0.11.1-responses.sse", Responses, `true true true false stop {18 2 0 true true}|"\n\n" [] stop`)
	f("vllm-0.32.0-messages.sse", Messages, `true true true false length {195 2 0 true true}|"\n\n" [] length`)
	f("vllm-0.19.1-messages.sse", Messages, `true true true false length {195 2 0 false true}|"\n\n" [] length`)
	f("vllm-0.11.1-messages.sse", Messages, `true true true false length {195 2 0 false true}|"\n" [] length`)
}

func TestRecordedBodies(t *testing.T) {
	files, _ := filepath.Glob("testdata/*-ok.json")
	if len(files) != 3 {
		t.Fatalf("%d recordings, want 3", len(files))
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var calls []struct {
			Name    string
			Request map[string]any
			Body    string
		}
		if err := json.Unmarshal(b, &calls); err != nil {
			t.Fatal(err)
		}
		for _, c := range calls {
			var want struct {
				Choices []struct {
					Text    string
					Message struct{ Content string }
				}
				Usage map[string]any
			}
			if err := json.Unmarshal([]byte(c.Body), &want); err != nil {
				t.Fatal(err)
			}
			kind := Chat
			if c.Request["prompt"] != nil {
				kind = Completion
			}
			whole, pieces := NewReply(kind, false, 0), NewReply(kind, false, 0)
			whole.Body([]byte(c.Body))
			for _, piece := range bytes.SplitAfter([]byte(c.Body), []byte{','}) {
				pieces.Feed(piece)
			}
			if a, b := collected(whole), collected(pieces); a != b || !strings.HasPrefix(a, "true true") {
				t.Errorf("%s, %s: %s and in pieces %s", file, c.Name, a, b)
			}
			if len(want.Choices) != len(whole.t.answers.list) || float64(whole.Usage().Prompt) != want.Usage["prompt_tokens"] {
				t.Fatalf("%s, %s: %d choices, want %d", file, c.Name, len(whole.t.answers.list), len(want.Choices))
			}
			for i, a := range whole.t.answers.list {
				if w := want.Choices[i].Text + want.Choices[i].Message.Content; string(a.text) != w {
					t.Errorf("%s, %s: text %q, want %q", file, c.Name, a.text, w)
				}
			}
		}
	}
}

func TestReplyCases(t *testing.T) {
	f := func(kind Kind, sse, want string) {
		t.Helper()
		if got := collected(feed(kind, sse)); got != want {
			t.Errorf("%s\ngot  %s\nwant %s", sse, got, want)
		}
	}
	ev := func(s ...string) string { return "data: " + strings.Join(s, "\n\ndata: ") + "\n\n" }
	piece := func(d string) string { return `{"choices":[{"index":0,"delta":` + d + `,"finish_reason":null}]}` }
	stop := `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`
	f(Chat, ev(piece(`{"content":"a"}`), piece(`{"content":"b","reasoning_content":"hm"}`), stop, "[DONE]"), `true true true false stop {0 0 0 false false}|"ab" [] stop`)
	f(Chat, ev(piece(`{"reasoning":"hm","content":null}`), stop, "[DONE]"), `true true true false stop {0 0 0 false false}|"" [] stop`)
	f(Chat, ev(piece(`{"content":"a"}`), stop), `true false false false stop {0 0 0 false false}|"a" [] stop`)
	f(Chat, ev(piece(`{"content":"a"}`), "[DONE]"), `true false true false  {0 0 0 false false}|"a" [] `)
	f(Chat, ev("[DONE]"), `false false true true  {0 0 0 false false}`) // a draining worker
	f(Chat, ev(piece(`{"content":"a"}`), `{"error":{"message":"EngineCore","code":500}}`, "[DONE]"), `false false true true  {0 0 0 false false}|"a" [] `)
	f(Chat, ev(`{"choices":[{"index":0,"delta":{},"finish_reason":"abort"}]}`, "[DONE]"), `false false true true abort {0 0 0 false false}|"" [] abort`)
	f(Chat, ev(`{"choices":[{"index":0,"delta":{},"finish_reason":"content_filter"}]}`, "[DONE]"), `true false true false other {0 0 0 false false}|"" [] other`)
	f(Chat, ev(`{"choices":[`), `false false false false  {0 0 0 false false}`)
	f(Chat, ": ping\n\nevent: x\ndata: {\"choices\":\ndata:[{\"delta\":{\"content\":\"a\"},\ndata: \"finish_reason\":\"stop\"}]}\n\ndata: [DONE]",
		`true true true false stop {0 0 0 false false}|"a" [] stop`)
	f(Chat, ev(`{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":8}}}`),
		`true false false false  {9 2 8 true true}`)
	f(Chat, ev(`{"choices":null,"usage":null,"error":null}`), `true false false false  {0 0 0 false false}`)
	calls := ev(piece(`{"role":"assistant","content":null}`), piece(`{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":""}}]}`),
		piece(`{"tool_calls":[{"index":0,"function":{"arguments":"{\"x\":"}}]}`), piece(`{"tool_calls":[{"index":1,"function":{"name":"g","arguments":"{}"}},{"index":0,"function":{"arguments":"1}"}}]}`),
		`{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}`, "[DONE]")
	f(Chat, calls, `true true true false tool_calls {0 0 0 false false}|"" [] tool_calls "f"("{\"x\":1}") "g"("{}")`)
	f(Completion, ev(`{"choices":[{"index":1,"text":"b"}]}`, `{"choices":[{"index":0,"text":"a","finish_reason":"stop"}]}`, `{"choices":[{"index":1,"text":"c","finish_reason":"length"}]}`, "[DONE]"),
		`true true true false stop {0 0 0 false false}|"a" [] stop|"bc" [] length`)
	f(Chat, ev(`{"choices":[{"index":1000000,"delta":{"content":"a"}}]}`), `true false false false  {0 0 0 false false}`)
	f(Other, ev(piece(`{"content":"a"}`)), `true false false false  {0 0 0 false false}|"" [] `)
}

func TestReplyIsBounded(t *testing.T) {
	event := `data: {"choices":[{"index":0,"delta":{"content":"0123456789"}}]}` + "\n\n"
	r := NewReply(Chat, true, 100)
	for range 1000 {
		r.Feed([]byte(event))
	}
	r.Feed([]byte("data: {\"choices\":[],\"usage\":{\"prompt_tokens\":5}}\n\n"))
	if ok, _ := r.Finish(); ok || len(r.t.answers.list[0].text) > 100 || r.Usage().Prompt != 5 {
		t.Errorf("ok %v, %d bytes kept, usage %+v", ok, len(r.t.answers.list[0].text), r.Usage())
	}
	r.Reset(Chat, true, 100) // an event without an end
	for range 1000 {
		r.Feed([]byte(`data: xxxxxxxxxxxxxxxxxxxxxxxxx`))
	}
	if ok, _ := r.Finish(); ok || r.split.held() > 200 {
		t.Errorf("ok %v, %d bytes held", ok, r.split.held())
	}
	r.Reset(Chat, false, 100)
	for range 1000 {
		r.Feed([]byte(`{"a":      `))
	}
	if ok, _ := r.Finish(); ok || len(r.body) > 200 {
		t.Errorf("ok %v, %d bytes of body", ok, len(r.body))
	}
	r.Reset(Chat, true, 0)
	r.Feed([]byte(event))
	r.Feed([]byte("data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n"))
	if _, complete := r.Finish(); !complete || string(r.t.answers.list[0].text) != "0123456789" {
		t.Errorf("after Reset: %q", r.t.answers.list[0].text)
	}
}

func TestReplyAllocatesNothing(t *testing.T) {
	for file, kind := range map[string]Kind{"chat": Chat, "completion": Completion, "responses": Responses, "messages": Messages} {
		b, err := os.ReadFile("testdata/vllm-0.32.0-" + file + ".sse")
		if err != nil {
			t.Fatal(err)
		}
		r := NewReply(kind, true, 0)
		if n := testing.AllocsPerRun(50, func() {
			r.Reset(kind, true, 0)
			r.Feed(b)
			if _, complete := r.Finish(); !complete {
				t.Fatalf("%s: not complete", file)
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations an answer, want 0", file, n)
		}
	}
}

// FuzzReplySplit: wherever a stream is cut, the same comes out. Byte by byte no event is ever taken the short way
// (see quick), so that this also holds the short way to the full one.
func FuzzReplySplit(f *testing.F) {
	files, _ := filepath.Glob("testdata/*.sse")
	for i, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, uint64(i)*77777, uint8(i))
	}
	c := &client{rnd: rand.New(rand.NewPCG(9, 9))}
	for i, d := range dialects {
		f.Add([]byte(d.stream(c, turn{text: c.text(90), calls: [][2]string{{"f", `{"a":1}`}}})), uint64(1), uint8(2+i))
	}
	f.Add([]byte(c.stream(turn{text: c.text(90)})), uint64(1), uint8(0))
	f.Add([]byte(strings.Repeat(chatChunk, 5)), uint64(1), uint8(4))
	f.Add([]byte(strings.Repeat(deltaLast, 3)), uint64(1), uint8(2))
	f.Add([]byte(": c\r\ndata:{\"choices\":\r\ndata:[{\"delta\":{\"content\":\"a\"}}]}\r\n\r\ndata\n\n\ndata: [DONE]"), uint64(3), uint8(0))
	f.Add([]byte("event: error\n\nevent:error \ndata:\ndata: {}\n\ndata: {\"error\":1}\r\n\r\n\r"), uint64(5), uint8(1))
	f.Fuzz(func(t *testing.T, stream []byte, seed uint64, kind uint8) {
		k := []Kind{Chat, Completion, Responses, Messages, Other}[kind%5]
		want := collected(feed(k, string(stream)))
		one, r := NewReply(k, true, 0), NewReply(k, true, 0)
		for i := range stream {
			one.Feed(stream[i : i+1])
		}
		if got := collected(one); got != want {
			t.Fatalf("byte by byte: %s\nwhole: %s", got, want)
		}
		for rest := stream; len(rest) > 0; {
			seed = seed*6364136223846793005 + 1442695040888963407
			n := min(1+int(seed>>33%(1+seed>>60*8)), len(rest))
			r.Feed(rest[:n])
			rest = rest[n:]
		}
		if got := collected(r); got != want {
			t.Fatalf("cut: %s\nwhole: %s", got, want)
		}
	})
}
