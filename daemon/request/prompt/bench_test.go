package prompt

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// chatBody makes a chat of about size bytes: paragraphs of prose with a line break every 70 bytes, in turns of 4 KB.
func chatBody(size int) []byte {
	para := strings.Repeat("The quick brown fox jumps over the lazy dog, and it does so every day.\n", 57)
	type msg struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	}
	var msgs []msg
	for n := 0; n < size; n += len(para) + 40 {
		msgs = append(msgs, msg{[]string{"user", "assistant"}[len(msgs)%2], fmt.Sprint(len(msgs), para)[:min(len(para), size-n)]})
	}
	b, err := json.Marshal(map[string]any{"model": "tiny", "stream": true, "max_tokens": 128, "user": "u-17", "messages": msgs})
	if err != nil {
		panic(err)
	}
	return b
}

func benchmarkParse(b *testing.B, body []byte, hash bool) {
	var p Parser
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		r, err := p.Parse(Chat, body)
		if err != nil || r.Model != "tiny" {
			b.Fatal(r, err)
		}
		if hash {
			r.Hash(42)
		}
	}
}

func BenchmarkScan256KB(b *testing.B)     { benchmarkParse(b, chatBody(256<<10), false) }
func BenchmarkScanHash256KB(b *testing.B) { benchmarkParse(b, chatBody(256<<10), true) }
func BenchmarkScan1KB(b *testing.B)       { benchmarkParse(b, chatBody(1<<10), false) }
func BenchmarkScanHash1KB(b *testing.B)   { benchmarkParse(b, chatBody(1<<10), true) }

// BenchmarkScanHashEscaped256KB is the worst case: Python's json.dumps of a text without a single ASCII letter.
func BenchmarkScanHashEscaped256KB(b *testing.B) {
	body := []byte(`{"model":"tiny","messages":[{"role":"user","content":"` + strings.Repeat(`\u4f60\u597d`, 22000) + `"}]}`)
	benchmarkParse(b, body, true)
}

// BenchmarkEncodingJSON256KB is the yardstick: the same fields with the standard library.
func BenchmarkEncodingJSON256KB(b *testing.B) {
	body := chatBody(256 << 10)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		var v struct {
			Model    string
			Stream   bool
			User     string
			Messages []struct{ Role, Content string }
		}
		if err := json.Unmarshal(body, &v); err != nil {
			b.Fatal(err)
		}
	}
}

const chatChunk = `data: {"id":"chatcmpl-ac3a06c4fa47204a","object":"chat.completion.chunk","created":1795251122,"model":"tiny",` +
	`"choices":[{"index":0,"delta":{"content":" lazy dog"},"logprobs":null,"finish_reason":null}]}` + "\n\n"

func BenchmarkReplyChunk(b *testing.B) { benchmarkChunk(b, Chat, chatChunk) }

// BenchmarkReplyChunkInFull is the price of an event that has nothing in common with the one before.
func BenchmarkReplyChunkInFull(b *testing.B) {
	benchmarkChunk(b, Chat, strings.Replace(chatChunk, `"logprobs":null`, `"logprobs":null,"token_ids":[1]`, 1))
}

func BenchmarkReplyChunkMessages(b *testing.B) {
	benchmarkChunk(b, Messages, "event: content_block_delta\n"+
		`data: {"type":"content_block_delta","delta":{"type":"text_delta","text":" lazy dog"},"index":0}`+"\n\n")
}

func BenchmarkReplyChunkResponses(b *testing.B) {
	benchmarkChunk(b, Responses, "event: response.output_text.delta\n"+
		`data: {"content_index":0,"delta":" lazy dog","item_id":"msg_9dba891332d9270c","logprobs":[],"output_index":0,"sequence_number":5,`+
		`"type":"response.output_text.delta"}`+"\n\n")
}

func benchmarkChunk(b *testing.B, kind Kind, event string) {
	chunk := []byte(event)
	r := NewReply(kind, true, 1<<20)
	b.SetBytes(int64(len(chunk)))
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		r.Feed(chunk)
		if n++; n%1000 == 0 {
			r.Reset(kind, true, 1<<20)
		}
	}
	if !r.Understood() {
		b.Fatal("chunk not understood")
	}
}

func BenchmarkTokenPrompt64k(b *testing.B) {
	ids := make([]int, 64<<10)
	for i := range ids {
		ids[i] = i * 7919 % 128000
	}
	body, _ := json.Marshal(map[string]any{"model": "tiny", "prompt": ids})
	var p Parser
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		r, err := p.Parse(Completion, body)
		if err != nil {
			b.Fatal(err)
		}
		r.Hash(1)
	}
}

// BenchmarkReplyEmbedding is an answer with one vector of 1,024 numbers.
func BenchmarkReplyEmbedding(b *testing.B) {
	body := []byte(`{"id":"embd-1","object":"list","data":[{"index":0,"object":"embedding","embedding":[` +
		strings.Repeat("-0.012345678901234,", 1023) + `0.5]}],"usage":{"prompt_tokens":4,"total_tokens":4}}`)
	r := NewReply(Embedding, false, 0)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		r.Reset(Embedding, false, 0)
		r.Body(body)
		if ok, _ := r.Finish(); !ok || r.Usage().Prompt != 4 {
			b.Fatal("not understood")
		}
	}
}
