package kvevents

import (
	"fmt"
	"testing"

	"github.com/warmpath/warmpath/cache/parts/blocks"
)

type nowhere struct{ tokens int }

func (n *nowhere) Store(s *blocks.Stored)       { n.tokens += len(s.Tokens) }
func (*nowhere) Remove(blocks.Medium, []uint64) {}
func (*nowhere) Clear()                         {}

// storedBlocks is a batch of one BlockStored, as vLLM sends a prompt of so many blocks of 16 tokens. Ids are of a
// vocabulary of 128k.
func storedBlocks(blocks int, maps bool) []byte {
	hashes, tokens := list{}, list{}
	for i := range blocks {
		hashes = append(hashes, uint64(i+1)*0x9e3779b97f4a7c15|1<<63)
	}
	for i := range blocks * 16 {
		tokens = append(tokens, compact(i*7919%128_000))
	}
	if !maps {
		return pack(list{1.5, list{list{"BlockStored", hashes, nil, tokens, 16, nil, "GPU"}}, 0})
	}
	return pack(list{1.5, list{pairs{"type", "BlockStored", "block_hashes", hashes, "parent_block_hash", nil,
		"token_ids", tokens, "block_size", 16, "lora_id", nil, "medium", "GPU", "lora_name", nil,
		"extra_keys", make(list, blocks), "group_idx", 0, "kv_cache_spec_kind", "full_attention"}}, 0})
}

// BenchmarkDecode decodes a BlockStored of 24 blocks of 16 tokens; ev/s is what one core decodes a second.
func BenchmarkDecode(b *testing.B) {
	for _, maps := range []bool{false, true} {
		payload := storedBlocks(24, maps)
		b.Run(fmt.Sprintf("form=%s", map[bool]string{false: "array", true: "map"}[maps]), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(payload)))
			var d Decoder
			var to nowhere
			for b.Loop() {
				if _, err := d.Decode(payload, &to); err != nil {
					b.Fatal(err)
				}
			}
			if to.tokens != b.N*24*16 {
				b.Fatal("tokens are missing")
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "ev/s")
		})
	}
}
