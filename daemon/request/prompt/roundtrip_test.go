package prompt

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// client plays a chat client: it writes JSON in one of several styles and keeps the conversation.
type client struct {
	rnd *rand.Rand
}

func (c *client) text(max int) string {
	words := []string{"plain ", "naïve ", "你好 ", "😀", "\"quoted\" ", "back\\slash ", "line\n", "tab\t", "</tag> ", "&amp; ", "\u2028", "\x01", "{\"a\": 1} "}
	var b strings.Builder
	for range c.rnd.IntN(max) {
		b.WriteString(words[c.rnd.IntN(len(words))])
	}
	return b.String()
}

// object writes fields in any order, with or without white space.
func (c *client) object(fields map[string]string) string {
	keys := make([]string, 0, len(fields))
	for k := range fields {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	c.rnd.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	gap := []string{"", " ", "\n  "}[c.rnd.IntN(3)]
	var out []string
	for _, k := range keys {
		out = append(out, gap+`"`+k+`":`+gap+fields[k])
	}
	return "{" + strings.Join(out, ",") + gap + "}"
}

// quote writes a string as encoding/json does, as it does without HTML escapes, or as Python's json.dumps does.
func (c *client) quote(s string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(c.rnd.IntN(2) == 0)
	if err := e.Encode(s); err != nil {
		panic(err)
	}
	out := strings.TrimSuffix(b.String(), "\n")
	if c.rnd.IntN(3) > 0 {
		return out
	}
	var a strings.Builder
	for _, r := range out {
		switch {
		case r < 0x80:
			a.WriteRune(r)
		case r < 0x10000:
			fmt.Fprintf(&a, `\u%04x`, r)
		default:
			r -= 0x10000
			fmt.Fprintf(&a, `\u%04X\u%04x`, 0xD800+r>>10, 0xDC00+r&0x3ff)
		}
	}
	return a.String()
}

type turn struct {
	role, text string
	calls      [][2]string // name, arguments
	id         string
}

func (c *client) message(m turn, parts bool) string {
	f := map[string]string{"role": c.quote(m.role), "content": c.quote(m.text)}
	switch {
	case m.text == "" && m.role == "assistant":
		if f["content"] = "null"; c.rnd.IntN(2) == 0 {
			delete(f, "content")
		}
	case parts && c.rnd.IntN(3) == 0:
		f["content"] = "[" + c.object(map[string]string{"type": `"text"`, "text": c.quote(m.text)}) + "]"
	}
	if m.role == "tool" {
		f["tool_call_id"] = c.quote(m.id)
	}
	var calls []string
	for i, call := range m.calls {
		calls = append(calls, c.object(map[string]string{"id": fmt.Sprintf(`"call-%d"`, i), "type": `"function"`,
			"function": c.object(map[string]string{"name": c.quote(call[0]), "arguments": c.quote(call[1])})}))
	}
	if calls != nil {
		f["tool_calls"] = "[" + strings.Join(calls, ",") + "]"
	}
	return c.object(f)
}

func (c *client) request(turns []turn) string {
	var list []string
	for _, m := range turns {
		list = append(list, c.message(m, true))
	}
	tool := c.object(map[string]string{"type": `"function"`, "function": c.object(map[string]string{"name": `"f"`,
		"description": c.quote("naïve"), "parameters": `{"type":"object","properties":{"z":{},"a":{}}}`})})
	return c.object(map[string]string{"model": `"m"`, "messages": "[" + strings.Join(list, ",") + "]", "tools": "[" + tool + "]"})
}

// stream is the answer as vLLM streams it: content and arguments in pieces.
func (c *client) stream(a turn) string {
	var b strings.Builder
	send := func(delta string) {
		fmt.Fprintf(&b, "data: {\"choices\":[{\"index\":0,\"delta\":%s,\"finish_reason\":null}]}\n\n", delta)
	}
	pieces := func(s string, f func(p string)) {
		for r := []rune(s); len(r) > 0; {
			n := 1 + c.rnd.IntN(len(r))
			f(string(r[:n]))
			r = r[n:]
		}
	}
	send(`{"role":"assistant","content":""}`)
	pieces(a.text, func(p string) { send(`{"content":` + c.quote(p) + `,"reasoning":"hm"}`) })
	for i, call := range a.calls {
		send(fmt.Sprintf(`{"tool_calls":[{"index":%d,"id":"call-%d","type":"function","function":{"name":%s,"arguments":""}}]}`, i, i, c.quote(call[0])))
		pieces(call[1], func(p string) {
			send(fmt.Sprintf(`{"tool_calls":[{"index":%d,"function":{"arguments":%s}}]}`, i, c.quote(p)))
		})
	}
	b.WriteString("data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
	return b.String()
}

// whole is the answer as plain JSON.
func (c *client) whole(a turn) string {
	return c.object(map[string]string{"choices": "[" + c.object(map[string]string{"index": "0", "finish_reason": `"stop"`, "message": c.message(a, false)}) + "]"})
}

// The hashes of a prompt, continued with the answer, are the first hashes of the next turn, whatever the client's
// JSON looks like.
func TestChatRoundTrip(t *testing.T) {
	c := &client{rnd: rand.New(rand.NewPCG(3, 4))}
	blocks := 0
	for range 400 {
		turns := []turn{{role: "system", text: c.text(60)}}
		for step := range 4 {
			turns = append(turns, turn{role: []string{"user", "tool"}[min(step, c.rnd.IntN(2))], text: c.text(40), id: "call-0"})
			now := parse(t, Chat, c.request(turns)).Chains[0]
			answer := turn{role: "assistant", text: c.text(30)}
			for range c.rnd.IntN(3) {
				answer.calls = append(answer.calls, [2]string{"f", []string{`{"q": "naïve \n", "n": [1, 2]}`, `{}`, `not {json`}[c.rnd.IntN(3)]})
			}
			r := NewReply(Chat, step%2 == 0, 0)
			if step%2 == 0 {
				r.Feed([]byte(c.stream(answer)))
			} else {
				r.Feed([]byte(c.whole(answer)))
			}
			if ok, complete := r.Finish(); !ok || !complete || !r.ExtendChoice(&now, 0) {
				t.Fatalf("answer not taken: %v %v", ok, complete)
			}
			turns = append(turns, answer)
			next := parse(t, Chat, c.request(append(slices.Clone(turns), turn{role: "user", text: strings.Repeat("x", 200)}))).Chains[0]
			if n := len(now.Hashes); n > len(next.Hashes) || !slices.Equal(now.Hashes, next.Hashes[:n]) {
				t.Fatalf("the next turn does not begin with the turn before and its answer:\n%s", c.request(turns))
			}
			if again := parse(t, Chat, c.request(turns)).Chains[0]; !same(now, again) {
				t.Fatalf("continued chain differs from the hashed one, answer %+v", answer)
			}
			blocks += len(now.Hashes)
		}
	}
	if blocks < 1000 {
		t.Errorf("only %d blocks were compared", blocks)
	}
}

func TestCompletionRoundTrip(t *testing.T) {
	c := &client{rnd: rand.New(rand.NewPCG(5, 6))}
	for range 200 {
		a, b := c.text(80), c.text(80)
		prompts := "[" + c.quote("other") + "," + c.quote(a) + "]"
		req := parse(t, Completion, `{"n":2,"prompt":`+prompts+`}`)
		r := NewReply(Completion, false, 0)
		r.Body([]byte(fmt.Sprintf(`{"choices":[{"index":2,"text":%s,"finish_reason":"length"}]}`, c.quote(b))))
		if r.Finish(); r.ExtendChoice(&req.Chains[1], 3) {
			t.Fatal("an answer that never came was taken")
		}
		for i := range r.t.answers.list[:2] {
			r.t.answers.list[i].finish = "stop"
		}
		if _, complete := r.Finish(); !complete || !r.ExtendChoice(&req.Chains[1], req.FirstChoice(1)) {
			t.Fatal("answer not taken")
		}
		next := parse(t, Completion, `{"prompt":`+c.quote(a+b)+`}`)
		if a+b != "" && !same(next.Chains[0], req.Chains[1]) {
			t.Fatalf("prompt and answer hash differently from the next prompt")
		}
	}
}

func TestTokenRoundTrip(t *testing.T) {
	c := parse(t, Completion, `{"prompt":[1,2,3,4,5,6,7,8,9,10]}`).Chains[0]
	r := NewReply(Completion, false, 0)
	r.Body([]byte(`{"choices":[{"index":0,"text":"x","token_ids":[11,12,13,14,15,16,17],"finish_reason":"stop"}]}`))
	if r.Finish(); !r.ExtendChoice(&c, 0) || !same(c, parse(t, Completion, `{"prompt":[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17]}`).Chains[0]) {
		t.Errorf("%+v", c)
	}
	c = parse(t, Tokens, `{"token_ids":[1,2,3,4,5,6,7,8,9,10]}`).Chains[0]
	r.Reset(Tokens, true, 0)
	r.Feed([]byte(`data: {"request_id":"x","choices":[{"index":0,"token_ids":[11,12]}]}` + "\n\n" +
		`data: {"request_id":"x","choices":[{"index":0,"token_ids":[13,14,15,16,17],"finish_reason":"length"}]}` + "\n\ndata: [DONE]\n\n"))
	if r.Finish(); !r.ExtendChoice(&c, 0) || !same(c, parse(t, Completion, `{"prompt":[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17]}`).Chains[0]) {
		t.Errorf("tokens in, tokens out: %+v", c)
	}
	r.Reset(Completion, false, 0)
	r.Body([]byte(`{"choices":[{"index":0,"text":"x","finish_reason":"stop"}]}`))
	if r.Finish(); r.ExtendChoice(&c, 0) {
		t.Errorf("an answer without ids continued a chain of ids")
	}
}

// TestContinuedRoundTrip: a worker goes on with the last message, so that the next turn has both parts as one.
func TestContinuedRoundTrip(t *testing.T) {
	const talk = `{"continue_final_message":true,"messages":[{"role":"user","content":"q"},{"role":"assistant","content":"%s"}]}`
	refused := 0
	for n := range 3 * BlockBytes {
		begun, rest := strings.Repeat("a", n+1), strings.Repeat("b", 2*BlockBytes)
		c := parse(t, Chat, fmt.Sprintf(talk, begun)).Chains[0]
		r := NewReply(Chat, false, 0)
		r.Body([]byte(`{"choices":[{"index":0,"message":{"content":"` + rest + `"},"finish_reason":"stop"}]}`))
		r.Finish()
		if before := c; !r.ExtendChoice(&c, 0) {
			refused++
			if !same(before, c) {
				t.Errorf("%d bytes: a chain that is not extended has changed", n)
			}
		} else if want := parse(t, Chat, fmt.Sprintf(talk, begun+rest)).Chains[0]; !same(c, want) {
			t.Errorf("%d bytes: the chain is not that of the whole message", n)
		}
	}
	if refused != 3 {
		t.Errorf("%d of %d are not extended; want those in which a block ends with the message", refused, 3*BlockBytes)
	}
}

// What would come back in another form, or perhaps not at all, leaves the chain as it is.
func TestExtendRefuses(t *testing.T) {
	f := func(request, reply string) {
		t.Helper()
		c := parse(t, Chat, request).Chains[0]
		before := c
		r := NewReply(Chat, false, 0)
		r.Body([]byte(reply))
		if r.Finish(); r.ExtendChoice(&c, 0) || !same(before, c) {
			t.Errorf("extended: %s\n%s", request, reply)
		}
	}
	good := `{"choices":[{"index":0,"message":{"content":"a"},"finish_reason":"stop"}]}`
	plain := `{"messages":[{"role":"user","content":"q"}]}`
	f(`{"echo":true,"messages":[{"role":"user","content":"q"}]}`, good)
	f(`{"continue_final_message":true,"messages":[{"role":"user","content":"q"}]}`, good)
	f(`{"continue_final_message":true,"echo":true,"messages":[{"role":"assistant","content":"q"}]}`, good)
	f(plain, `{"choices":[{"index":0,"message":{"content":"a"},"finish_reason":"abort"}]}`)
	f(plain, `{"choices":[{"index":0,"message":{"content":"a"},"finish_reason":null}]}`)
	f(plain, `{"error":{"message":"x"}}`)
	f(plain, `{"choices":[`)
	f(plain, ``)
}
