package events

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/warmpath/warmpath/daemon/lab/vllmsim/engine"
	"github.com/warmpath/warmpath/daemon/lab/vllmsim/msgpack"
)

// fields are the values of an event in the order of the array form.
var fields = map[string][]string{
	"BlockStored": {"type", "block_hashes", "parent_block_hash", "token_ids", "block_size", "lora_id", "medium", "lora_name",
		"extra_keys"},
	"BlockRemoved":     {"type", "block_hashes", "medium"},
	"AllBlocksCleared": {"type"},
}

// changeOf turns a decoded event of either form back into what the engine reported.
func changeOf(v any) engine.Change {
	m, ok := v.(map[string]any)
	if !ok {
		list := v.([]any)
		m = map[string]any{}
		for i, name := range fields[list[0].(string)] {
			m[name] = list[i]
		}
	}
	var c engine.Change
	switch m["type"] {
	case "AllBlocksCleared":
		c.Kind = engine.Cleared
	case "BlockRemoved":
		c.Kind = engine.Removed
	}
	hashes, _ := m["block_hashes"].([]any)
	for _, h := range hashes {
		c.Hashes = append(c.Hashes, h.(uint64))
	}
	tokens, _ := m["token_ids"].([]any)
	for _, id := range tokens {
		c.Tokens = append(c.Tokens, uint32(id.(uint64)))
	}
	c.Parent, c.HasParent = m["parent_block_hash"].(uint64)
	c.Session, _ = m["session_id"].(string)
	if m["medium"] == "CPU" {
		c.Medium = engine.OnCPU
	}
	if extra, _ := m["extra_keys"].([]any); len(extra) > 0 && extra[0] != nil {
		c.Salt = extra[0].([]any)[0].(string)
	}
	return c
}

// decodeBatch reads a payload.
func decodeBatch(t *testing.T, payload []byte) (ts float64, changes []engine.Change) {
	t.Helper()
	v, err := msgpack.Decode(payload)
	if err != nil {
		t.Fatal(err)
	}
	batch := v.([]any)
	for _, event := range batch[1].([]any) {
		changes = append(changes, changeOf(event))
	}
	return batch[0].(float64), changes
}

// TestRecordedBytes writes each recorded batch again.
func TestRecordedBytes(t *testing.T) {
	f := func(name string, form Form, blockSize int) {
		t.Helper()
		file, err := os.Open(filepath.Join("../../../..", "testdata", "vllm", name))
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		lines := bufio.NewScanner(file)
		lines.Buffer(nil, 1<<20)
		n := 0
		for ; lines.Scan(); n++ {
			var line struct {
				Step   string   `json:"step"`
				Frames []string `json:"frames_hex"`
			}
			if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
				t.Fatal(err)
			}
			want, err := hex.DecodeString(line.Frames[2])
			if err != nil {
				t.Fatal(err)
			}
			cfg := Config{Form: form, BlockSize: blockSize}
			ts, changes := decodeBatch(t, want)
			if got := cfg.appendBatch(nil, ts, changes); !bytes.Equal(got, want) {
				t.Errorf("%s: %s:\n got %x\nwant %x", name, line.Step, got, want)
			}
		}
		if n < 15 {
			t.Errorf("%s has %d batches", name, n)
		}
	}
	f("kv-events.jsonl", Map, 32)
	f("kv-events-0.19.1.jsonl", Array, 32)
}

// TestOffloadedBytes: what the CPU tier stores has neither tokens nor parent, as offloading sends it.
func TestOffloadedBytes(t *testing.T) {
	change := engine.Change{
		Medium:    engine.OnCPU,
		Hashes:    []uint64{16, 17},
		Parent:    15,
		HasParent: true,
		Tokens:    []uint32{1, 2, 3, 4},
		Salt:      "s",
		Session:   "t",
	}
	for _, form := range []Form{Map, Array} {
		cfg := Config{Form: form, BlockSize: 2}
		_, got := decodeBatch(t, cfg.appendBatch(nil, 0, []engine.Change{change}))
		c := got[0]
		if c.Medium != engine.OnCPU || len(c.Hashes) != 2 || c.HasParent || len(c.Tokens) > 0 || c.Salt != "" {
			t.Errorf("%s: %+v", form, c)
		}
	}
}
