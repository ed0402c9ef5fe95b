package tokens

import (
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/warmpath/warmpath/daemon/request/prompt"
)

// pieces reads a text in pieces of one size.
type pieces struct {
	text string
	size int
}

func (p *pieces) Read(b []byte) (int, error) {
	n := copy(b[:min(len(b), p.size)], p.text)
	p.text = p.text[n:]
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

// TestWithoutUsage: a stream without the usage that only the router has asked for is, to the byte, what the engine would have
// sent, wherever it is cut.
func TestWithoutUsage(t *testing.T) {
	const usage = `{"prompt_tokens":5,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":4}}`
	counts := prompt.Usage{Prompt: 5, Output: 2, Cached: 4, CachedKnown: true, Known: true}
	long := strings.Repeat("a word ", 300_000)
	for _, c := range []struct {
		about, sent, want string
		learnt            prompt.Usage
	}{
		{"vLLM's", "data: {\"id\":\"x\",\"choices\":[{\"index\":0}]}\n\ndata: {\"id\":\"x\",\"choices\":[],\"usage\":" + usage + ",\"system_fingerprint\":\"v\"}\n\ndata: [DONE]\n\n",
			"data: {\"id\":\"x\",\"choices\":[{\"index\":0}]}\n\ndata: [DONE]\n\n", counts},
		{"OpenAI's", "data: {\"id\":\"x\",\"choices\":[{\"index\":0}],\"usage\":null}\n\ndata: {\"choices\": [ ] , \"usage\": " + usage + "}\n\ndata: [DONE]\n\n",
			"data: {\"id\":\"x\",\"choices\":[{\"index\":0}]}\n\ndata: [DONE]\n\n", counts},
		{"in the middle, with spaces, by CRLF", ": ping\r\n\r\ndata: {\"id\": 1, \"usage\": null, \"choices\": [{}]}\r\n\r\n",
			": ping\r\n\r\ndata: {\"id\": 1, \"choices\": [{}]}\r\n\r\n", prompt.Usage{}},
		{"first", "data: {\"usage\": null, \"choices\": [{}]}\n\n", "data: {\"choices\": [{}]}\n\n", prompt.Usage{}},
		{"by itself", "data: { \"usage\":null }\n\n", "data: { \"usage\":null }\n\n", prompt.Usage{}},
		{"with each piece", "data: {\"choices\":[{}],\"usage\":{\"prompt_tokens\":1}}\n\ndata: {\"choices\":[{}],\"usage\":" + usage + "}\n\n",
			"data: {\"choices\":[{}]}\n\ndata: {\"choices\":[{}]}\n\n", counts},
		{"in a text of the model's", "data: {\"choices\":[{\"text\":\"\\\"usage\\\":null\",\"x\":{\"usage\":1}}]}\n\n", "data: {\"choices\":[{\"text\":\"\\\"usage\\\":null\",\"x\":{\"usage\":1}}]}\n\n", prompt.Usage{}},
		{"in an error", "data: {\"error\":{\"usage\":1},\"usage\":{\"prompt_tokens\":1}}\n\n", "data: {\"error\":{\"usage\":1},\"usage\":{\"prompt_tokens\":1}}\n\n", prompt.Usage{}},
		{"no event's end", "data: {\"choices\":[{}],\"usage\":null}", "data: {\"choices\":[{}]}", prompt.Usage{}},
		{"behind a long event", "data: {\"choices\":[{\"text\":\"" + long + "\"}]}\r\n\r\ndata: {\"choices\":[],\"usage\":" + usage + "}\n\ndata: [DONE]\n\n",
			"data: {\"choices\":[{\"text\":\"" + long + "\"}]}\r\n\r\ndata: [DONE]\n\n", counts},
	} {
		for _, size := range []int{1, 2, 3, 7, 64, 4096, 1 << 22} {
			if len(c.sent) > 1<<20 && size < 7 {
				continue
			}
			reply := prompt.NewReply(prompt.Chat, true, 0)
			got, err := io.ReadAll(WithoutUsage(&pieces{text: c.sent, size: size}, reply, false))
			if string(got) != c.want || err != nil || reply.Usage() != c.learnt {
				t.Errorf("%s, cut each %d: %.300q, %v, learnt %+v; want %.300q, learnt %+v", c.about, size, got, err, reply.Usage(), c.want, c.learnt)
			}
		}
	}
	reply := prompt.NewReply(prompt.Chat, true, 0)
	got, err := io.ReadAll(WithoutUsage(io.MultiReader(strings.NewReader("data: {\"choices\":[{}]}\n\ndata: {\"choi"), iotest.ErrReader(io.ErrUnexpectedEOF)), reply, false))
	if string(got) != "data: {\"choices\":[{}]}\n\n" || err != io.ErrUnexpectedEOF {
		t.Errorf("broken off: %q, %v", got, err)
	}
}
