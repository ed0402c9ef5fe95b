package main

import (
	"encoding/binary"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/cache/parts/blocks"
	"github.com/warmpath/warmpath/daemon/lab/vllmsim/engine"
)

// asked is a request of a recording, and what the worker told of it. Texts have four bytes a token.
type asked struct {
	prompt string
	cached int
	answer string // as far as it fills blocks
}

// chains follows which blocks a worker stores and removes, each told by all tokens up to its end.
type chains struct {
	upTo    map[uint64]string
	last    string // longest that was stored since it was read
	removed []string
}

func newChains() *chains { return &chains{upTo: map[uint64]string{}} }

func (c *chains) store(hashes []uint64, parent uint64, tokens string) {
	all := c.upTo[parent] + tokens
	for i, h := range hashes {
		c.upTo[h] = all[:len(all)-len(tokens)+(i+1)*len(tokens)/len(hashes)]
	}
	if len(all) > len(c.last) {
		c.last = all
	}
}

func (c *chains) remove(hashes []uint64) {
	for _, h := range hashes {
		c.removed = append(c.removed, c.upTo[h])
	}
}

// heard is chains as the sink of a recording.
type heard struct{ *chains }

// Store implements kvevents.Sink.
func (h heard) Store(s *blocks.Stored) { h.store(s.Hashes, s.Parent, fourBytes(s.Tokens)) }

// Remove implements kvevents.Sink.
func (h heard) Remove(_ blocks.Medium, hashes []uint64) { h.remove(hashes) }

// Clear implements kvevents.Sink.
func (heard) Clear() {}

// fourBytes is ids as text of which the engine makes a token each.
func fourBytes(ids []uint32) string {
	var b strings.Builder
	for _, id := range ids {
		fmt.Fprintf(&b, "%04x", id)
	}
	return b.String()
}

// readAsked reads a recording. The first request is one that nobody recorded; it came after the cache was emptied.
func readAsked(t *testing.T, file string) ([]asked, *chains) {
	t.Helper()
	all, c := []asked{{}}, newChains()
	end := func() {
		q := &all[len(all)-1]
		if len(all) == 1 {
			q.prompt = c.last
		} else if strings.HasPrefix(c.last, q.prompt) {
			q.answer = c.last[len(q.prompt):]
		}
		c.last = ""
	}
	eachRecorded(t, file, heard{c}, func(v *vector) {
		end()
		all = append(all, asked{prompt: fourBytes(v.IDs), cached: *v.Cached})
	})
	end()
	return all, c
}

// TestTheEngineDoesWhatVLLMDid plays what a recorded worker was asked to the engine of the lab and of warmpath sim.
// Their hit rates are at most a point apart, and they evict the same blocks in the same order.
func TestTheEngineDoesWhatVLLMDid(t *testing.T) {
	files, err := filepath.Glob("recordings/caches-*.jsonl")
	if err != nil || len(files) < 2 {
		t.Fatalf("%d recordings, %v", len(files), err)
	}
	for _, file := range files {
		const block = 32
		e, err := engine.New(engine.Config{KVTokens: smallBlocks * block, BlockTokens: block, MaxModelLen: smallLength,
			Changes: true})
		if err != nil {
			t.Fatal(err)
		}
		now, did := time.Duration(0), newChains()
		prompts, found, recorded := 0, 0, 0
		requests, told := readAsked(t, file)
		for i := range requests {
			r := &requests[i]
			q := engine.NewSequence(engine.AppendTokens(nil, r.prompt), "", 0, block)
			// An answer's last tokens, which fill no block, are not in the recording. They hold one all the same.
			q.Reply = engine.FixedReply(r.answer + fourBytes(make([]uint32, block)))
			q.MaxTokens = len(r.answer)/engine.BytesPerToken + 1
			if err := e.Submit(now, &q); err != nil {
				t.Fatal(err)
			}
			for at, ok := e.NextEvent(); ok; at, ok = e.NextEvent() {
				e.Advance(at)
				now = at
			}
			for _, b := range e.TakeBatches() {
				for k := range b.Changes {
					c := &b.Changes[k]
					var tokens []byte
					for _, id := range c.Tokens {
						tokens = binary.LittleEndian.AppendUint32(tokens, id)
					}
					if c.Kind == engine.Stored {
						did.store(c.Hashes, c.Parent, string(tokens))
					} else {
						did.remove(c.Hashes)
					}
				}
			}
			if i > 0 {
				prompts, recorded, found = prompts+q.PromptTokens(), recorded+r.cached, found+q.CachedTokens()
			}
		}
		if apart := math.Abs(float64(found-recorded)) / float64(max(1, prompts)); recorded == 0 || apart > .01 {
			t.Errorf("%s: the engine found %d of %d tokens cached, vLLM %d", file, found, prompts, recorded)
		}
		n := min(len(told.removed), len(did.removed)) // a recording ends between two requests, or in one
		if n < 90 || !slices.Equal(told.removed[:n], did.removed[:n]) {
			t.Errorf("%s: the engine evicted %d blocks, vLLM %d, and not the same", file, len(did.removed), len(told.removed))
		}
		t.Logf("%s: %d requests, %d tokens, %d cached, recorded %d; the first %d evictions alike",
			filepath.Base(file), len(requests)-1, prompts, found, recorded, n)
	}
}
