package resume

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"github.com/warmpath/warmpath/daemon/request/prompt"
	"github.com/warmpath/warmpath/daemon/request/sse"
)

// engine writes the streams of one worker, as vLLM 0.32 does: an event for each piece.
type engine struct {
	name   string // in its ids
	every  bool   // each event has the usage
	tokens []string
	prompt int
	ids    bool
}

func text(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

// stream returns the events of an answer.
func (e engine) stream(kind prompt.Kind, usage bool) (events []string) {
	add := func(format string, more ...any) { events = append(events, fmt.Sprintf(format, more...)+"\n\n") }
	head := fmt.Sprintf(`data: {"id":"%s","object":"x","created":%d,"model":"m","choices":[`, e.name, len(e.name))
	counts := func(out int, asked bool) string {
		if !asked {
			return "}"
		}
		return fmt.Sprintf(`,"usage":{"prompt_tokens":%d,"total_tokens":%d,"completion_tokens":%d}}`, e.prompt, e.prompt+out, out)
	}
	all := strings.Join(e.tokens, "")
	switch kind {
	case prompt.Chat:
		add("%s", head+`{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]`+counts(0, e.every))
		for i, t := range e.tokens {
			end := "null"
			if i == len(e.tokens)-1 {
				end = `"length","stop_reason":null`
			}
			add(head+`{"index":0,"delta":{"content":%s},"logprobs":null,"finish_reason":%s}]`+counts(i+1, e.every), text(t), end)
		}
	case prompt.Completion:
		for i, t := range e.tokens {
			end := "null"
			if i == len(e.tokens)-1 {
				end = `"length"`
			}
			ids := ""
			if e.ids {
				ids = fmt.Sprintf(`,"prompt_token_ids":null,"token_ids":[%d]`, t[0])
				if i == 0 {
					ids = fmt.Sprintf(`,"prompt_token_ids":[1,2,3],"token_ids":[%d]`, t[0])
				}
			}
			add(head+`{"index":0,"text":%s,"logprobs":null,"finish_reason":%s,"stop_reason":null`+ids+`}]`+
				counts(i+1, e.every), text(t), end)
		}
	case prompt.Messages:
		add("event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"%s\",\"type\":\"message\",\"role\":\"assistant\",\"content\":[],\"usage\":{\"input_tokens\":%d,\"output_tokens\":0}}}", e.name, e.prompt)
		add("event: content_block_start\ndata: {\"type\":\"content_block_start\",\"content_block\":{\"type\":\"text\",\"text\":\"\"},\"index\":0}")
		for _, t := range e.tokens {
			add("event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"delta\":{\"type\":\"text_delta\",\"text\":%s},\"index\":0}", text(t))
		}
		add("event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}")
		add("event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"max_tokens\",\"stop_sequence\":null},\"usage\":{\"input_tokens\":%d,\"output_tokens\":%d}}", e.prompt, len(e.tokens))
		add("event: message_stop\ndata: {\"type\":\"message_stop\"}")
	case prompt.Responses:
		n := 0
		event := func(kind, fields string) {
			add("event: %s\ndata: {%s,\"sequence_number\":%d,\"type\":\"%s\"}", kind, fields, n, kind)
			n++
		}
		begun := `"response":{"id":"` + e.name + `","created_at":1,"output":[],"status":"in_progress","text":null}`
		item := `"msg_` + e.name + `"`
		part := `"part":{"annotations":[],"text":%s,"type":"output_text"}`
		done := `{"id":` + item + `,"content":[{"annotations":[],"text":` + text(all) + `,"type":"output_text"}],"role":"assistant","type":"message"}`
		event("response.created", begun)
		event("response.in_progress", begun)
		event("response.output_item.added", `"item":{"id":`+item+`,"content":[],"role":"assistant","type":"message"},"output_index":0`)
		event("response.content_part.added", fmt.Sprintf(`"content_index":0,"item_id":`+item+`,"output_index":0,`+part, `""`))
		for _, t := range e.tokens {
			event("response.output_text.delta", `"content_index":0,"delta":`+text(t)+`,"item_id":`+item+`,"logprobs":[],"output_index":0`)
		}
		event("response.output_text.done", `"content_index":0,"item_id":`+item+`,"output_index":0,"text":`+text(all))
		event("response.content_part.done", fmt.Sprintf(`"content_index":0,"item_id":`+item+`,"output_index":0,`+part, text(all)))
		event("response.output_item.done", `"item":`+done+`,"output_index":0`)
		event("response.completed", fmt.Sprintf(`"response":{"id":"%s","created_at":2,"output":[%s],"status":"incomplete","max_output_tokens":%d,"usage":{"input_tokens":%d,"output_tokens":%d,"total_tokens":%d}}`,
			e.name, done, len(e.tokens), e.prompt, len(e.tokens), e.prompt+len(e.tokens)))
	}
	if kind == prompt.Chat || kind == prompt.Completion {
		if usage {
			add("%s", head+"]"+counts(len(e.tokens), true))
		}
		add("data: [DONE]")
	}
	return events
}

var bodies = map[prompt.Kind]string{
	prompt.Chat:       `{"model":"m","stream":true,"max_tokens":%d,"min_tokens":3,"seed":7,"logit_bias":{"1":2},"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"hi"}]}`,
	prompt.Completion: `{"model":"m","stream":true,"max_tokens":%d,"stream_options":{"include_usage":true},"prompt":"h\u00e9 "}`,
	prompt.Messages:   `{"model":"m","stream":true,"max_tokens":%d,"system":[{"type":"text","text":"be"}],"messages":[{"role":"user","content":"hi"}]}`,
	prompt.Responses:  `{"model":"m","stream":true,"max_output_tokens":%d,"input":"hi"}`,
}

// asksFor returns the text that a request for the rest of an answer has, and how many tokens it may have.
func asksFor(t *testing.T, r Request) (begun string, most int) {
	t.Helper()
	var b struct {
		Prompt   any
		Messages []struct{ Role, Content string }
		Input    []struct {
			Status  string
			Content any
		}
		Max      int   `json:"max_tokens"`
		MaxOut   int   `json:"max_output_tokens"`
		Continue bool  `json:"continue_final_message"`
		Generate *bool `json:"add_generation_prompt"`
	}
	if err := json.Unmarshal(r.Body, &b); err != nil {
		var input struct{ Input string }
		if json.Unmarshal(r.Body, &input) == nil {
			_ = json.Unmarshal(r.Body, &struct {
				MaxOut *int `json:"max_output_tokens"`
			}{&b.MaxOut})
			return "", b.MaxOut
		}
		t.Fatalf("%v: %s", err, r.Body)
	}
	switch r.Kind {
	case prompt.Completion:
		text, _ := b.Prompt.(string)
		return strings.TrimPrefix(text, "hé "), b.Max
	case prompt.Responses:
		last := b.Input[len(b.Input)-1]
		if last.Status != "in_progress" {
			return "", b.MaxOut
		}
		return last.Content.([]any)[0].(map[string]any)["text"].(string), b.MaxOut
	}
	if last := b.Messages[len(b.Messages)-1]; last.Role == "assistant" {
		if !b.Continue || b.Generate == nil || *b.Generate {
			t.Fatalf("%s", r.Body)
		}
		return last.Content, b.Max
	}
	return "", b.Max
}

var alphabet = []string{"a", "tide ", "é", "\"", "\\", "\n", "漢字", "😀", "</s>", "\u2028", "data: ", "\t", "e\u0301", "{}"}

// TestCuts cuts 10,000 streams at a random byte. What the client gets in the end is, to the byte but for counts that
// engines differ in, the stream of one worker.
func TestCuts(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	kinds := []prompt.Kind{prompt.Chat, prompt.Completion, prompt.Messages, prompt.Responses}
	continued := 0
	for i := range 10_000 {
		kind := kinds[i%4]
		first := engine{name: "first", prompt: 10}
		for range 1 + random.IntN(30) {
			first.tokens = append(first.tokens, fmt.Sprint(alphabet[random.IntN(len(alphabet))], random.IntN(100)))
		}
		events := first.stream(kind, true)
		whole := strings.Join(events, "")
		cut := random.IntN(len(whole))
		body := fmt.Appendf(nil, bodies[kind], len(first.tokens))
		d := New(kind, body)
		client := []byte(whole[:cut])
		client = client[:sse.LastEnd(client)] // the router passes whole events on
		for rest := client; len(rest) > 0; {
			n := min(len(rest), 1+random.IntN(300))
			d.Feed(rest[:n])
			rest = rest[n:]
		}
		if kind == prompt.Chat {
			d.Count(10, 0)
		}
		ask, ok := d.Ask()
		if !ok {
			if len(client) > 0 && !d.Over() && len(d.text) == 0 {
				t.Fatalf("%v is not continued: %q", kind, client)
			}
			continue
		}
		continued++
		begun, most := asksFor(t, ask)
		if all := strings.Join(first.tokens, ""); !strings.HasPrefix(all, begun) || begun != d.Text() {
			t.Fatalf("%v: %q of %q", kind, begun, all)
		}
		n := d.tokens()
		if most != len(first.tokens)-n || strings.Join(first.tokens[:n], "") != begun {
			t.Fatalf("%v: %d tokens more after %d of %d", kind, most, n, len(first.tokens))
		}
		second := engine{name: "second-one", prompt: 10 + n, tokens: first.tokens[n:], every: true}
		answer := strings.Join(second.stream(ask.Kind, true), "")
		var from io.Reader = strings.NewReader(answer)
		if i%3 == 0 {
			from = iotest.OneByteReader(from)
		}
		got, err := io.ReadAll(d.Join(from))
		if err != nil {
			t.Fatalf("%v: %v after %q: %s", kind, err, begun, answer)
		}
		all := string(client) + string(got)
		if d.item == nil { // the client knows no message yet
			all = strings.ReplaceAll(all, "msg_second-one", "msg_first")
		}
		want := strings.Replace(whole, `"created_at":2`, `"created_at":1`, 1)
		if all = strings.ReplaceAll(all, `,"usage":null}`, "}"); all != want || !utf8.ValidString(all) {
			i := 0
			for i < min(len(all), len(want)) && all[i] == want[i] {
				i++
			}
			t.Fatalf("%v, cut at %d, differs at %d:\n%s\nwant:\n%s", kind, cut, i, all[max(0, i-99):], want[max(0, i-99):])
		}
	}
	if continued < 6000 {
		t.Errorf("%d of 10000 streams were continued", continued)
	}
}
