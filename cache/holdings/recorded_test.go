package holdings

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/cache/parts/blocks"
)

// recordedStep is one line of a recording.
type recordedStep struct {
	Step           string            `json:"step"`
	Prompt         []uint32          `json:"prompt"`
	Salt           string            `json:"cache_salt"`
	Cached         uint32            `json:"cached"`
	PromptLogprobs *int              `json:"prompt_logprobs"`
	Xargs          map[string]string `json:"vllm_xargs"`
	Batches        [][]any           `json:"batches"`
}

// fields returns an event's fields by name, of both forms.
func fields(event any) map[string]any {
	if m, ok := event.(map[string]any); ok {
		return m
	}
	names := map[string][]string{
		"BlockStored": {"type", "block_hashes", "parent_block_hash", "token_ids", "block_size", "lora_id", "medium",
			"lora_name", "extra_keys"},
		"BlockRemoved":     {"type", "block_hashes", "medium"},
		"AllBlocksCleared": {"type"},
	}
	m := map[string]any{}
	list := event.([]any)
	for i, name := range names[list[0].(string)] {
		if i < len(list) {
			m[name] = list[i]
		}
	}
	return m
}

func number(v any) uint64 {
	var n uint64
	if _, err := fmt.Sscan(string(v.(json.Number)), &n); err != nil {
		panic(err)
	}
	return n
}

func numbers(v any) (all []uint64) {
	list, _ := v.([]any)
	for _, x := range list {
		all = append(all, number(x))
	}
	return all
}

func apply(w *Writer, event any) {
	f := fields(event)
	switch hashes := numbers(f["block_hashes"]); f["type"] {
	case "BlockStored":
		s := &blocks.Stored{Hashes: hashes, BlockSize: int(number(f["block_size"]))}
		for _, id := range numbers(f["token_ids"]) {
			s.Tokens = append(s.Tokens, uint32(id))
		}
		if parent := f["parent_block_hash"]; parent != nil {
			s.HasParent = true
			s.Parent = number(parent)
		}
		if extra, ok := f["extra_keys"].([]any); ok && len(extra) > 0 && extra[0] != nil {
			s.Salt = extra[0].([]any)[0].(string)
		}
		w.Store(s)
	case "BlockRemoved":
		w.Remove(GPU, hashes)
	case "AllBlocksCleared":
		w.Clear()
	}
}

// What the index believes before each request is what the engine then found, to the token.
func TestRecordedEvents(t *testing.T) {
	for _, version := range []string{"0.11.1", "0.19.1", "0.32.0"} {
		t.Run(version, func(t *testing.T) {
			file, err := os.Open("testdata/vllm-" + version + ".jsonl")
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			x := New(Config{})
			w := x.Writer(0)
			compared, hits := 0, 0
			for lines := bufio.NewReader(file); ; {
				line, err := lines.ReadString('\n')
				if line == "" {
					break
				}
				var s recordedStep
				d := json.NewDecoder(strings.NewReader(line))
				d.UseNumber()
				if err := d.Decode(&s); err != nil {
					t.Fatal(err)
				}
				if s.Prompt == nil { // whoever resets a cache clears its view: the engine reports it only with its next step
					w.Clear()
				} else if s.PromptLogprobs == nil {
					var q Query
					var out [1]Held
					q.Reset("", s.Salt, s.Prompt)
					x.Match(&q, []uint32{0}, out[:])
					compared++
					if s.Cached > 0 {
						hits++
					}
					if out[0].GPU != s.Cached || out[0].Local != s.Cached {
						t.Errorf("%s: %+v of %d tokens; the engine found %d", s.Step, out[0], len(s.Prompt), s.Cached)
					}
				}
				if s.Xargs != nil {
					continue
				}
				for _, batch := range s.Batches {
					for _, event := range batch {
						apply(w, event)
						if err := x.check(); err != nil {
							t.Fatalf("%s: %v", s.Step, err)
						}
					}
				}
				if err != nil {
					break
				}
			}
			if got := x.Worker(0); compared < 15 || hits < 3 || got.Unknown > 0 || got.Orphans > 0 || got.Mismatched > 0 {
				t.Errorf("%d compared, %d hits, %+v", compared, hits, got)
			}
			t.Logf("%d requests compared, %d of them hits", compared, hits)
		})
	}
}
