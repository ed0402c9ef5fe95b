package replay

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
)

func testConfig(t testing.TB, c Config) *Config {
	t.Helper()
	if c.URL == "" {
		c.URL = "http://127.0.0.1:1"
	}
	if c.Models == nil {
		c.Models = []string{"A"}
	}
	done, err := c.completed()
	if err != nil {
		t.Fatal(err)
	}
	return &done
}

func promptText(t testing.TB, c *Config, r *Request) string {
	t.Helper()
	var got struct {
		Prompt string
	}
	data, err := io.ReadAll(&body{prompt: newPrompt(c, `"A"`, c.Seed, r)})
	if err == nil {
		err = json.Unmarshal(data, &got)
	}
	if err != nil {
		t.Fatal(err)
	}
	return got.Prompt
}

func TestBodyIsTheRequest(t *testing.T) {
	c := testConfig(t, Config{})
	for _, r := range readTestTrace(t, 0) {
		p := newPrompt(c, `"org/\"A\""`, c.Seed, &r)
		data, err := io.ReadAll(&body{prompt: p})
		if err != nil || int64(len(data)) != p.size() {
			t.Fatalf("read %d bytes, %v; want %d", len(data), err, p.size())
		}
		var got struct {
			Model         string
			Prompt        string
			MaxTokens     int  `json:"max_tokens"`
			IgnoreEOS     bool `json:"ignore_eos"`
			Stream        bool
			StreamOptions map[string]bool `json:"stream_options"`
		}
		dec := json.NewDecoder(bytes.NewReader(data))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&got); err != nil {
			t.Fatal(err)
		}
		if got.Model != `org/"A"` || got.MaxTokens != r.OutputTokens || !got.IgnoreEOS || !got.Stream ||
			!got.StreamOptions["include_usage"] {
			t.Fatalf("body says %+v", got)
		}
		if n := len(got.Prompt); n != r.InputTokens*4 {
			t.Fatalf("prompt has %d bytes for %d tokens", n, r.InputTokens)
		}
		if strings.ContainsFunc(got.Prompt, func(c rune) bool { return c < 'a' || c > 'p' }) {
			t.Fatal("prompt holds other bytes than a to p")
		}
	}
}

func TestBodyInAnyPieces(t *testing.T) {
	for _, bytesPerToken := range []int{1, 3, 4, 5} {
		c := testConfig(t, Config{BytesPerToken: bytesPerToken})
		p := newPrompt(c, `"A"`, c.Seed, &Request{InputTokens: 1300, OutputTokens: 1, Blocks: []uint64{7, 8, 1 << 63}})
		whole := make([]byte, p.size())
		if n, err := (&body{prompt: p}).Read(whole); n != len(whole) || err != nil {
			t.Fatalf("one read gave %d of %d, %v", n, len(whole), err)
		}
		if err := iotest.TestReader(&body{prompt: p}, whole); err != nil {
			t.Errorf("%d bytes per token: %v", bytesPerToken, err)
		}
		for size := 1; size < 40; size++ {
			var got []byte
			r := &body{prompt: p}
			for b := make([]byte, size); ; {
				n, err := r.Read(b)
				got = append(got, b[:n]...)
				if err == io.EOF {
					break
				}
			}
			if !bytes.Equal(got, whole) {
				t.Fatalf("%d bytes per token: reads of %d bytes give another body", bytesPerToken, size)
			}
		}
	}
}

// Two prompts share the text of their leading equal ids and not one KV block after them.
func TestPromptsShareWhatTheTraceShares(t *testing.T) {
	c := testConfig(t, Config{})
	a := promptText(t, c, &Request{InputTokens: 4 * 512, OutputTokens: 1, Blocks: []uint64{0, 1, 2, 3}})
	b := promptText(t, c, &Request{InputTokens: 4*512 - 100, OutputTokens: 1, Blocks: []uint64{0, 1, 9, 3}})
	const two = 2 * 512 * 4
	if a[:two] != b[:two] {
		t.Error("equal ids gave different text")
	}
	if a[3*512*4:len(b)] != b[3*512*4:] {
		t.Error("a cut block is no prefix of the whole one")
	}
	c.Seed = 1
	if other := promptText(t, c, &Request{InputTokens: 512, OutputTokens: 1, Blocks: []uint64{0}}); other[:64] == a[:64] {
		t.Error("another seed gave the same text")
	}

	seen := map[string]bool{}
	const kv = KVBlockTokens * 4
	var text [BlockTokens * 4]byte
	for id := range uint64(5000) {
		blockText(text[:], 0, id, 0)
		for i := 0; i < len(text); i += kv {
			if s := string(text[i : i+kv]); seen[s] {
				t.Fatalf("block %d repeats a KV block at byte %d", id, i)
			} else {
				seen[s] = true
			}
		}
	}
}

func BenchmarkBlockText(b *testing.B) {
	var text [BlockTokens * 4]byte
	b.SetBytes(int64(len(text)))
	for i := range b.N {
		blockText(text[:], 0, uint64(i), 0)
	}
}

// A request of the trace's mean size through net/http into nothing.
func BenchmarkBody(b *testing.B) {
	c := testConfig(b, Config{})
	r := &Request{InputTokens: 12870, OutputTokens: 345, Blocks: make([]uint64, 26)}
	p := newPrompt(c, `"A"`, c.Seed, r)
	b.SetBytes(p.size())
	b.ReportAllocs()
	for b.Loop() {
		req, _ := http.NewRequest("POST", "http://x/", &body{prompt: p})
		req.ContentLength = p.size()
		if err := req.Write(io.Discard); err != nil {
			b.Fatal(err)
		}
	}
}
