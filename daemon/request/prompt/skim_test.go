package prompt

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// feedPieces makes a reply that keeps so many bytes at most, and feeds it a text in pieces.
func feedPieces(kind Kind, stream bool, keeps, piece int, text string) *Reply {
	r := NewReply(kind, stream, keeps)
	for b := []byte(text); len(b) > 0; {
		n := min(piece, len(b))
		r.Feed(bytes.Clone(b[:n]))
		b = b[n:]
	}
	r.Finish()
	return r
}

// TestUsageOfRecordedStreams: a reply that may keep next to nothing of a stream reads the usage that one reads which
// keeps it all, however the stream is cut.
func TestUsageOfRecordedStreams(t *testing.T) {
	files, _ := filepath.Glob("testdata/*.sse")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		kind := Chat
		for k := Chat; k <= Messages; k++ {
			if strings.HasSuffix(file, "-"+k.String()+".sse") {
				kind = k
			}
		}
		want := feedPieces(kind, true, 0, 1<<20, string(text))
		if !want.Usage().Known {
			continue
		}
		for _, piece := range []int{1, 2, 7, 100, 1000} {
			got := feedPieces(kind, true, 20, piece, string(text))
			if got.Usage() != want.Usage() {
				t.Errorf("%s, cut each %d: %+v; want %+v", file, piece, got.Usage(), want.Usage())
			}
		}
	}
}

// TestWhatIsCountedOfLongAnswers: a bound on what is kept of an answer is none on what is counted of it.
func TestWhatIsCountedOfLongAnswers(t *testing.T) {
	long := strings.Repeat("a word of an answer ", 100) // 2,000 bytes, and a reply keeps 500
	probs := strings.Repeat(`{"token":"usage","bytes":[117,115],"logprob":-1.5,"top_logprobs":[{"token":"}{","logprob":null}]},`, 40)
	usage := `{"prompt_tokens":7,"total_tokens":4007,"completion_tokens":4000,"prompt_tokens_details":{"cached_tokens":3}}`
	said := Usage{Prompt: 7, Output: 4000, Cached: 3, CachedKnown: true, Known: true}
	both := Usage{Prompt: 7, Output: 4000, Known: true}
	type counted struct {
		usage         Usage
		pieces, bytes int
	}
	for _, c := range []struct {
		about  string
		kind   Kind
		stream bool
		text   string
		want   counted
	}{
		{"usage last", Chat, false, `{"id":"x","choices":[{"message":{"content":"` + long + `"},"logprobs":{"content":[` + probs + `{}]}}],"usage":` + usage + `}`,
			counted{usage: said, bytes: len(long)}},
		{"usage first", Chat, false, `{"usage":` + usage + `,"choices":[{"message":{"content":"` + long + `"}}]}`, counted{usage: said, bytes: len(long)}},
		{"usage in the middle, with spaces", Chat, false, "{ \"a\" : [ 1 , 2 ] ,\r\n \"usage\" : " + strings.ReplaceAll(usage, ",", " ,\n ") + ` , "choices": [{"message":{"content":"` +
			long + `"}}] }`, counted{usage: said, bytes: len(long)}},
		{"several choices and none of them long", Chat, false, `{"choices":[` + strings.Repeat(`{"message":{"content":"four"}},`, 100) + `{}],"usage":` + usage + `}`,
			counted{usage: said, bytes: 400}},
		{"a usage in a call of the model", Messages, false, `{"content":[{"type":"tool_use","input":{"usage":{"output_tokens":1},"x":"` + long +
			`"}}],"usage":{"input_tokens":7,"output_tokens":4000},"x":{"usage":{"output_tokens":2}}}`, counted{usage: both}},
		{"a usage in its text", Chat, false, `{"choices":[{"message":{"content":"\"usage\":{\"prompt_tokens\":1} ` + long + `"}}]}`, counted{bytes: len(long) + 24}},
		{"vectors", Embedding, false, `{"data":[{"embedding":[` + strings.Repeat("-0.25, ", 200) + `1]}],"usage":{"prompt_tokens":7,"total_tokens":7}}`,
			counted{usage: Usage{Prompt: 7, Known: true}}},
		{"no usage", Completion, false, `{"choices":[{"text":"` + long + `"}]}`, counted{bytes: len(long)}},
		{"one event", Chat, true, `data: {"choices":[{"delta":{"content":"` + long + `"}}],"usage":` + usage + "}\n\n", counted{usage: said, pieces: 1, bytes: len(long)}},
		{"one event without its end", Chat, true, `data: {"choices":[{"delta":{"content":"` + long + `"}}],"usage":` + usage + "}", counted{usage: said, pieces: 1, bytes: len(long)}},
		{"one event, and those behind it", Chat, true, `data: {"choices":[{"delta":{"content":"` + long + "\"}}]}\r\n\r\n" +
			strings.Repeat(": ping\r\n\r\ndata: {\"choices\":[{\"delta\":{\"content\":\"four\"}}]}\r\n\r\n", 9) + "data:{\"choices\":[],\"usage\":" + usage + "}\r\n\r\ndata: [DONE]\r\n\r\n",
			counted{usage: said, pieces: 10, bytes: len(long) + 36}},
		{"data on several lines", Chat, true, "event: x\ndata: {\"choices\":[{\"delta\":{\"content\":\"" + long + "\"}}],\ndata: \"usage\":\ndata: " + usage + "}\n\n",
			counted{usage: said, pieces: 1, bytes: len(long)}},
		{"the end of a response", Responses, true, `data: {"type":"response.completed","response":{"status":"completed","output":[{"type":"message","content":[{"text":"` + long +
			`"}]}],"usage":{"input_tokens":7,"output_tokens":4000}}}` + "\n\n", counted{usage: both, pieces: 1, bytes: len(long)}},
		{"the end of a message", Messages, true, `data: {"type":"message_start","message":{"id":"m","usage":{"input_tokens":7,"output_tokens":0}}}` + "\n\n" +
			`data: {"type":"content_block_delta","delta":{"type":"text_delta","text":"` + long + `"}}` + "\n\n" +
			`data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":4000}}` + "\n\n", counted{usage: both, pieces: 1, bytes: len(long)}},
		{"token ids", Other, false, `{"choices":[{"token_ids":[` + strings.Repeat("17, ", 299) + `9],"logprobs":[` + probs + `1]}]}`, counted{pieces: 300}},
		{"a number that is missing", Chat, false, `{"choices":[{"message":{"content":"` + long + `"}}],"usage":{"prompt_tokens":7,"total_tokens":4007}}`,
			counted{usage: both, bytes: len(long)}},
		{"a usage that is none", Chat, false, `{"text":"` + long + `","usage":{"type":"duration","seconds":9}}`, counted{bytes: len(long)}},
		{"Cohere's", Other, false, `{"text":"` + long + `","meta":{"billed_units":{"input_tokens":5.0,"output_tokens":4000},"tokens":{"input_tokens":7,"output_tokens":9}}}`,
			counted{usage: both, bytes: len(long)}},
		{"Cohere's in a stream", Other, true, `data: {"type":"content-delta","delta":{"message":{"content":{"text":"` + long + `"}}}}` + "\n\n" +
			`data: {"type":"message-end","delta":{"usage":{"tokens":{"input_tokens":7,"output_tokens":4000}}}}` + "\n\n", counted{usage: both, pieces: 1, bytes: len(long)}},
	} {
		for _, piece := range []int{1, 3, 50, 1 << 20} {
			r := NewReply(c.kind, c.stream, 500)
			if c.kind == Other {
				r.Skim()
			}
			for b := []byte(c.text); len(b) > 0; b = b[min(piece, len(b)):] {
				r.Feed(bytes.Clone(b[:min(piece, len(b))]))
			}
			r.Finish()
			got := counted{usage: r.Usage()}
			got.pieces, got.bytes = r.Streamed()
			if c.stream && c.kind != Other && piece > 1000 && got.usage == c.want.usage { // it lies in one piece, and is read in full
				continue
			}
			if got != c.want {
				t.Errorf("%s, cut each %d: %+v; want %+v", c.about, piece, got, c.want)
			}
			if held := cap(r.skimmed.usage) + cap(r.body) + r.split.held(); held > 2*maxSkimUsage {
				t.Errorf("%s: %d bytes are held", c.about, held)
			}
		}
	}
}

// TestSkimmedUsageIsBounded: a usage that has no end holds no more than another one.
func TestSkimmedUsageIsBounded(t *testing.T) {
	r := feedPieces(Chat, false, 10, 1000, `{"usage":{"prompt_tokens":7,"x":"`+strings.Repeat("y", 1<<20)+`"}}`)
	if held := cap(r.skimmed.usage); held > 2*maxSkimUsage {
		t.Errorf("%d bytes", held)
	}
}

// BenchmarkSkim is the cost of a long answer with log-probabilities, whose usage comes last.
func BenchmarkSkim(b *testing.B) {
	probs := strings.Repeat(`{"token":" word","logprob":-1.25,"bytes":[32,119],"top_logprobs":[{"token":" other","logprob":-2.5,"bytes":[32,111]}]},`, 20_000)
	text := []byte(fmt.Sprintf(`{"choices":[{"logprobs":{"content":[%s{}]}}],"usage":{"prompt_tokens":7,"completion_tokens":20000}}`, probs))
	r := NewReply(Chat, false, 1)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		r.Reset(Chat, false, 1)
		for at := 0; at < len(text); at += 32 << 10 {
			r.Feed(text[at:min(len(text), at+32<<10)])
		}
		if r.Usage().Output != 20_000 {
			b.Fatal(r.Usage())
		}
	}
}
