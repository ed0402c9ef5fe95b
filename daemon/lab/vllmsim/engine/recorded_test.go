package engine

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// recordedEvent is one KV event of a recording.
type recordedEvent struct {
	Type   string   `json:"type"`
	Hashes []uint64 `json:"block_hashes"`
	Parent *uint64  `json:"parent_block_hash"`
	Tokens []uint32 `json:"token_ids"`
	Extra  [][]any  `json:"extra_keys"`
	ID     string   `json:"session_id"`
}

// recordedRequest is one request of a recording.
type recordedRequest struct {
	Step    string `json:"step"`
	Request struct {
		Path    string            `json:"path"`
		Headers map[string]string `json:"headers"`
		Body    *struct {
			Prompt         []uint32          `json:"prompt"`
			MaxTokens      int               `json:"max_tokens"`
			Salt           string            `json:"cache_salt"`
			Session        string            `json:"session_id"`
			PromptLogprobs *int              `json:"prompt_logprobs"`
			Args           map[string]string `json:"vllm_xargs"`
		} `json:"body"`
	} `json:"request"`
	Usage struct {
		Details struct {
			Cached int `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
	} `json:"usage"`
}

// eachLine decodes the lines of a recording.
func eachLine[T any](t *testing.T, name string, visit func(*T)) {
	t.Helper()
	f, err := os.Open(filepath.Join("../../../..", "testdata", "vllm", name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var v T
		if err := json.Unmarshal(lines.Bytes(), &v); err != nil {
			t.Fatal(err)
		}
		visit(&v)
	}
}

// twins ties each recorded hash to the engine's.
type twins struct{ to, from map[uint64]uint64 }

// same ties two lists of hashes. It returns false where one of them is tied to another already.
func (w twins) same(recorded, ours []uint64) bool {
	if len(recorded) != len(ours) {
		return false
	}
	for i, r := range recorded {
		if v, ok := w.to[r]; ok && v != ours[i] {
			return false
		}
		if v, ok := w.from[ours[i]]; ok && v != r {
			return false
		}
		w.to[r] = ours[i]
		w.from[ours[i]] = r
	}
	return true
}

// like reports whether a change is what a recorded event reports. Tokens that were generated may differ.
func (w twins) like(r *recordedEvent, c *Change, prompt []uint32) bool {
	if !w.same(r.Hashes, c.Hashes) {
		return false
	}
	switch r.Type {
	case "AllBlocksCleared":
		return c.Kind == Cleared
	case "BlockRemoved":
		return c.Kind == Removed && c.Medium == OnGPU
	}
	salt := ""
	if len(r.Extra[0]) > 0 {
		salt = r.Extra[0][0].(string)
	}
	if c.HasParent {
		if r.Parent == nil || !w.same([]uint64{*r.Parent}, []uint64{c.Parent}) {
			return false
		}
	} else if r.Parent != nil || c.Salt != salt {
		return false
	}
	known := min(len(prompt), len(r.Tokens))
	return c.Kind == Stored && c.Session == r.ID && len(c.Tokens) == len(r.Tokens) &&
		(c.HasParent || slices.Equal(c.Tokens[:known], prompt[:known]))
}

// TestRecordedRequests plays what a vLLM 0.32.0 with 64 blocks of 32 tokens was asked, and holds cached tokens and
// every change, its place and order included, to what that one sent.
func TestRecordedRequests(t *testing.T) {
	events := map[string][][]recordedEvent{}
	eachLine(t, "kv-events.jsonl", func(line *struct {
		Step    string
		Decoded []json.RawMessage
	}) {
		var batch []recordedEvent
		if err := json.Unmarshal(line.Decoded[1], &batch); err != nil {
			t.Fatal(err)
		}
		events[line.Step] = append(events[line.Step], batch)
	})
	s := simulate(t, Config{KVTokens: 64 * 32, BlockTokens: 32, MaxModelLen: 1024, Changes: true})
	w := twins{to: map[uint64]uint64{}, from: map[uint64]uint64{}}
	batches := 0
	eachLine(t, "kv-requests.jsonl", func(r *recordedRequest) {
		if b := r.Request.Body; b == nil {
			if !s.ResetCache(strings.Contains(r.Request.Path, "reset_running"), false) {
				t.Errorf("%s: refused", r.Step)
			}
			return
		}
		b := r.Request.Body
		q := NewSequence(b.Prompt, b.Salt, 0, 32)
		q.MaxTokens = b.MaxTokens
		q.Recompute = b.PromptLogprobs != nil
		q.Report = b.Args["kv_cache_report_mode"] == "full"
		q.Session = b.Session + r.Request.Headers["X-Session-ID"]
		s.submit(&q)
		s.await(&q)
		if q.CachedTokens() != r.Usage.Details.Cached {
			t.Errorf("%s: %d tokens cached, recorded %d", r.Step, q.CachedTokens(), r.Usage.Details.Cached)
		}
		got, want := s.TakeBatches(), events[r.Step]
		if len(got) != len(want) {
			t.Errorf("%s: %d batches, recorded %d", r.Step, len(got), len(want))
			return
		}
		for i := range want {
			batches++
			if len(got[i].Changes) != len(want[i]) {
				t.Errorf("%s: %d changes, recorded %d", r.Step, len(got[i].Changes), len(want[i]))
				continue
			}
			for k := range want[i] {
				if !w.like(&want[i][k], &got[i].Changes[k], b.Prompt) {
					t.Errorf("%s: change %d is %+v, recorded %+v", r.Step, k, got[i].Changes[k], want[i][k])
				}
			}
		}
	})
	if batches < 15 {
		t.Errorf("%d batches compared; the recording has 16", batches)
	}
}
