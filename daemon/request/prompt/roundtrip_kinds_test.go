package prompt

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// dialect writes requests and answers as one of the newer endpoints has them.
type dialect struct {
	kind    Kind
	request func(c *client, turns []turn) string
	stream  func(c *client, a turn) string
	whole   func(c *client, a turn) string
}

var dialects = []dialect{
	{Responses, (*client).responsesRequest, (*client).responsesStream, (*client).responsesWhole},
	{Messages, (*client).messagesRequest, (*client).messagesStream, (*client).messagesWhole},
}

func (c *client) list(items []string) string { return "[" + strings.Join(items, ",") + "]" }

// textPart is a text as a list of one part, as clients return it.
func (c *client) textPart(kind, text string) string {
	return c.list([]string{c.object(map[string]string{"type": c.quote(kind), "text": c.quote(text), "annotations": "[]"})})
}

func (c *client) outputItems(a turn) (items []string) {
	if c.rnd.IntN(2) == 0 {
		items = append(items, `{"type":"reasoning","id":"rs_1","summary":[],"content":[{"type":"reasoning_text","text":"hm"}]}`)
	}
	if a.text != "" {
		items = append(items, c.object(map[string]string{"type": `"message"`, "role": `"assistant"`, "id": `"msg_1"`, "status": `"completed"`,
			"content": c.textPart("output_text", a.text)}))
	}
	for i, call := range a.calls {
		items = append(items, c.object(map[string]string{"type": `"function_call"`, "call_id": fmt.Sprintf(`"call-%d"`, i),
			"name": c.quote(call[0]), "arguments": c.quote(call[1])}))
	}
	return items
}

func (c *client) responsesRequest(turns []turn) string {
	f := map[string]string{"model": `"m"`, "store": "false",
		"tools": `[{"type":"function","name":"f","description":"na\u00efve","parameters":{"type":"object"},"strict":true}]`}
	var items []string
	for i, m := range turns {
		switch {
		case m.role == "system" && i == 0:
			f["instructions"] = c.quote(m.text)
		case m.role == "assistant":
			items = append(items, c.outputItems(m)...)
		case m.role == "tool":
			items = append(items, c.object(map[string]string{"type": `"function_call_output"`, "call_id": c.quote(m.id), "output": c.quote(m.text)}))
		case c.rnd.IntN(2) == 0:
			items = append(items, c.object(map[string]string{"role": c.quote(m.role), "content": c.quote(m.text)}))
		default:
			items = append(items, c.object(map[string]string{"role": c.quote(m.role), "type": `"message"`, "content": c.textPart("input_text", m.text)}))
		}
	}
	f["input"] = c.list(items)
	if len(turns) == 2 && turns[1].role == "user" && c.rnd.IntN(2) == 0 {
		f["input"] = c.quote(turns[1].text)
	}
	return c.object(f)
}

func (c *client) responsesWhole(a turn) string {
	return c.object(map[string]string{"id": `"resp_1"`, "object": `"response"`, "status": `"completed"`, "output": c.list(c.outputItems(a)),
		"usage": `{"input_tokens":1,"output_tokens":1}`})
}

func (c *client) responsesStream(a turn) string {
	var b strings.Builder
	send := func(kind, rest string) {
		rest = strings.ReplaceAll(rest, "\n", " ") // an event is one line
		fmt.Fprintf(&b, "event: response.%s\ndata: {%s,\"sequence_number\":%d,\"type\":\"response.%s\"}\n\n", kind, rest, b.Len(), kind)
	}
	send("created", `"response":{"id":"resp_1","status":"in_progress","output":[],"usage":null}`)
	for i, item := range c.outputItems(a) {
		send("output_item.added", fmt.Sprintf(`"item":{"type":"message","content":[]},"output_index":%d`, i))
		c.pieces(a.text, func(p string) {
			send("output_text.delta", fmt.Sprintf(`"content_index":0,"delta":%s,"output_index":%d`, c.quote(p), i))
		})
		send("output_item.done", fmt.Sprintf(`"item":%s,"output_index":%d`, item, i))
	}
	send("completed", `"response":`+c.responsesWhole(turn{text: "the end of it"}))
	return b.String()
}

// pieces cuts a text as a stream does.
func (c *client) pieces(s string, f func(p string)) {
	for r := []rune(s); len(r) > 0; {
		n := 1 + c.rnd.IntN(min(len(r), 9))
		f(string(r[:n]))
		r = r[n:]
	}
}

func (c *client) blocks(a turn) (blocks []string) {
	if c.rnd.IntN(2) == 0 {
		blocks = append(blocks, `{"type":"thinking","thinking":"hm","signature":"s"}`)
	}
	if a.text != "" {
		blocks = append(blocks, c.object(map[string]string{"type": `"text"`, "text": c.quote(a.text)}))
	}
	for i, call := range a.calls {
		blocks = append(blocks, c.object(map[string]string{"type": `"tool_use"`, "id": fmt.Sprintf(`"call-%d"`, i), "name": c.quote(call[0]), "input": call[1]}))
	}
	return blocks
}

func (c *client) messagesRequest(turns []turn) string {
	f := map[string]string{"model": `"m"`, "max_tokens": "9",
		"tools": `[{"name":"f","description":"na\u00efve","input_schema":{"type":"object"}}]`}
	var list []string
	for i, m := range turns {
		content := c.quote(m.text)
		switch {
		case m.role == "system" && i == 0:
			if f["system"] = content; c.rnd.IntN(2) == 0 {
				f["system"] = c.textPart("text", m.text)
			}
			continue
		case m.role == "assistant":
			content = c.list(c.blocks(m))
		case m.role == "tool":
			m.role = "user"
			inner := content
			if c.rnd.IntN(2) == 0 {
				inner = c.textPart("text", m.text)
			}
			content = c.list([]string{c.object(map[string]string{"type": `"tool_result"`, "tool_use_id": c.quote(m.id), "content": inner})})
		case c.rnd.IntN(2) == 0:
			content = c.textPart("text", m.text)
		}
		list = append(list, c.object(map[string]string{"role": c.quote(m.role), "content": content}))
	}
	f["messages"] = c.list(list)
	return c.object(f)
}

func (c *client) messagesWhole(a turn) string {
	return c.object(map[string]string{"id": `"msg_1"`, "type": `"message"`, "role": `"assistant"`, "stop_reason": `"end_turn"`, "content": c.list(c.blocks(a))})
}

func (c *client) messagesStream(a turn) string {
	var b strings.Builder
	n := 0
	send := func(kind, rest string) { fmt.Fprintf(&b, "event: %s\ndata: {\"type\":\"%s\"%s}\n\n", kind, kind, rest) }
	block := func(start string, deltas func()) {
		send("content_block_start", fmt.Sprintf(`,"content_block":%s,"index":%d`, start, n))
		deltas()
		send("content_block_stop", fmt.Sprintf(`,"index":%d`, n))
		n++
	}
	delta := func(kind, field string) func(p string) {
		return func(p string) {
			send("content_block_delta", fmt.Sprintf(`,"delta":{"type":"%s_delta","%s":%s},"index":%d`, kind, field, c.quote(p), n))
		}
	}
	send("message_start", `,"message":{"id":"msg_1","type":"message","usage":{"input_tokens":1,"output_tokens":0}}`)
	block(`{"type":"thinking","thinking":""}`, func() { c.pieces("let me see", delta("thinking", "thinking")) })
	if a.text != "" {
		block(`{"type":"text","text":""}`, func() { c.pieces(a.text, delta("text", "text")) })
	}
	for i, call := range a.calls {
		block(fmt.Sprintf(`{"type":"tool_use","id":"call-%d","name":%s,"input":{}}`, i, c.quote(call[0])), func() {
			if call[1] != "{}" {
				c.pieces(call[1], delta("input_json", "partial_json"))
			}
		})
	}
	send("message_delta", `,"delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":1,"output_tokens":1}`)
	send("message_stop", "")
	return b.String()
}

// As TestChatRoundTrip, for the endpoints that came later.
func TestRoundTripOfKinds(t *testing.T) {
	c := &client{rnd: rand.New(rand.NewPCG(7, 8))}
	for _, d := range dialects {
		blocks := 0
		for range 60 {
			turns := []turn{{role: "system", text: c.text(60)}}
			for step := range 4 {
				turns = append(turns, turn{role: []string{"user", "tool"}[min(step, c.rnd.IntN(2))], text: "q" + c.text(40), id: "call-0"})
				now := parse(t, d.kind, d.request(c, turns)).Chains[0]
				answer := turn{role: "assistant", text: c.text(30)}
				for range c.rnd.IntN(3) {
					answer.calls = append(answer.calls, [2]string{"f", []string{`{"q": "naïve \n", "n": [1, 2]}`, `{}`}[c.rnd.IntN(2)]})
				}
				if answer.text == "" && answer.calls == nil {
					answer.text = "a"
				}
				body := d.whole(c, answer)
				if step%2 == 0 {
					body = d.stream(c, answer)
				}
				r := NewReply(d.kind, step%2 == 0, 0)
				for rest := body; len(rest) > 0; {
					n := min(len(rest), 1+c.rnd.IntN(2000))
					r.Feed([]byte(rest[:n]))
					rest = rest[n:]
				}
				if ok, complete := r.Finish(); !ok || !complete || !r.ExtendChoice(&now, 0) {
					t.Fatalf("answer not taken: %v %v\n%s", ok, complete, body)
				}
				turns = append(turns, answer)
				next := parse(t, d.kind, d.request(c, append(slices.Clone(turns), turn{role: "user", text: strings.Repeat("x", 200)}))).Chains[0]
				if n := len(now.Hashes); n > len(next.Hashes) || !slices.Equal(now.Hashes, next.Hashes[:n]) {
					t.Fatalf("the next turn does not begin with the turn before and its answer:\n%s\n%s", d.request(c, turns), body)
				}
				again := parse(t, d.kind, d.request(c, turns)).Chains[0]
				if !same(now, again) {
					t.Fatalf("continued chain differs from the hashed one, answer %+v\n%s", answer, body)
				}
				blocks += len(now.Hashes)
			}
		}
		if blocks < 300 {
			t.Errorf("only %d blocks were compared", blocks)
		}
	}
}
