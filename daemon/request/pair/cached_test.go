package pair

import (
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/warmpath/warmpath/daemon/request/prompt"
)

// TestCachedTokens: the count of the prompt's usage is replaced, in each form, wherever the answer is cut. Nothing else
// changes.
func TestCachedTokens(t *testing.T) {
	kind := prompt.Chat
	f := func(events bool, text, want string) {
		t.Helper()
		for _, from := range []io.Reader{strings.NewReader(text), iotest.OneByteReader(strings.NewReader(text)),
			iotest.HalfReader(strings.NewReader(text))} {
			got, err := io.ReadAll(NewReader(from, kind, counting(Counts{Cached: 7, Made: 889, Input: 4}), events))
			if err != nil || string(got) != want {
				t.Errorf("%s: %s, %v; want %s", text, got, err, want)
			}
		}
	}
	same := func(events bool, text string) { t.Helper(); f(events, text, text) }
	const chat = `{"id":"x","choices":[{"text":"\"usage\":{"}],"usage":{"prompt_tokens":900,"prompt_tokens_details": {"cached_tokens": N},"completion_tokens":1}}`
	const responses = `{"usage":{"input_tokens":900,"input_tokens_details":{"cached_tokens":N,"audio":896}}}`
	of := func(text, n string) string { return strings.ReplaceAll(text, "N", n) }
	f(false, of(chat, "896"), of(chat, "7"))
	f(false, of(responses, "0"), of(responses, "7"))
	f(true, "data: "+of(chat, "896")+"\n\ndata: [DONE]\n\n", "data: "+of(chat, "7")+"\n\ndata: [DONE]\n\n")
	f(true, "event: response.completed\r\ndata: {\"response\":"+of(responses, "896")+"}\r\n\r\n",
		"event: response.completed\r\ndata: {\"response\":"+of(responses, "7")+"}\r\n\r\n")
	same(false, of(chat, "null"))
	same(false, `{"response":`+of(responses, "896")+`}`)
	same(false, `{"choices":[`+of(responses, "896")+`],"x":`+of(responses, "5")+`}`)
	same(false, `{"usage":[{"prompt_tokens_details":{"cached_tokens":1}}]}`)
	same(false, `{"usage":{"prompt_tokens_details":{"cached_tokens":"1","cached_tokens_of":1,"x":[1,{"cached_tokens":1}]}}}`)
	same(false, `}]{"usage"`)
	kind = prompt.Messages
	const (
		decoder   = `"usage":{"input_tokens":1,"output_tokens":2,"cache_creation_input_tokens":0,"cache_read_input_tokens":899}}`
		prefiller = `"usage":{"input_tokens":4,"output_tokens":2,"cache_creation_input_tokens":889,"cache_read_input_tokens":7}}`
		begins    = `data: {"type":"message_start","message":{"usage":{"input_tokens":900,"output_tokens":0}}}` + "\n\n"
	)
	f(false, `{"type":"message",`+decoder, `{"type":"message",`+prefiller)
	f(true, begins+`data: {"type":"message_delta",`+decoder+"\n\n", begins+`data: {"type":"message_delta",`+prefiller+"\n\n")
	f(true, `data: {"message":{"usage":{"input_tokens":1,"cache_read_input_tokens":899}}}`+"\n\n",
		`data: {"message":{"usage":{"input_tokens":1,"cache_read_input_tokens":7}}}`+"\n\n")
	same(false, `{"content":[{`+decoder+`],"message":{`+decoder+`}`)
	same(true, `data: {"delta":{`+decoder+"}\n\n")
	same(false, of(chat, "896"))
	kind = prompt.Responses
	same(false, `{`+decoder)
	same(true, "data: x\n\n: {\"usage\":{\"prompt_tokens_details\":{\"cached_tokens\":1}}}\n\n")
}

func counting(n Counts) func() Counts { return func() Counts { return n } }

// TestNoCounts: a prefiller without counts found nothing in its cache, as far as anybody knows. The three numbers of
// messages add up to the prompt, which then the decoder alone knows.
func TestNoCounts(t *testing.T) {
	for kind, c := range map[prompt.Kind][2]string{
		prompt.Chat:     {`{"usage":{"prompt_tokens_details":{"cached_tokens":896}}}`, `{"usage":{"prompt_tokens_details":{"cached_tokens":0}}}`},
		prompt.Messages: {`{"usage":{"input_tokens":1,"cache_read_input_tokens":9}}`, `{"usage":{"input_tokens":1,"cache_read_input_tokens":9}}`},
	} {
		if got, err := io.ReadAll(NewReader(strings.NewReader(c[0]), kind, counting(Counts{}), false)); err != nil || string(got) != c[1] {
			t.Errorf("%s became %s, %v", c[0], got, err)
		}
	}
}

// FuzzCachedTokens: what has no count goes through as it is, and each cut gives the same.
func FuzzCachedTokens(f *testing.F) {
	f.Add(`{"usage":{"prompt_tokens_details":{"cached_tokens":896}}}`, false)
	f.Add(`{"usage":{"input_tokens":3,"cache_creation_input_tokens":192,"cache_read_input_tokens":64}}`, false)
	f.Add("data: {\"response\":{\"usage\":{\"input_tokens_details\":{\"cached_tokens\":8}}}}\n\n", true)
	f.Fuzz(func(t *testing.T, text string, events bool) {
		for _, kind := range []prompt.Kind{prompt.Chat, prompt.Messages} {
			whole, _ := io.ReadAll(NewReader(strings.NewReader(text), kind, counting(Counts{Cached: 7}), events))
			cut, _ := io.ReadAll(NewReader(iotest.OneByteReader(strings.NewReader(text)), kind, counting(Counts{Cached: 7}), events))
			counts := strings.Contains(text, "cached_tokens") || strings.Contains(text, "input_tokens")
			if string(whole) != string(cut) || !counts && string(whole) != text {
				t.Errorf("%q: %q, %q", text, whole, cut)
			}
		}
	})
}
