package events

import (
	"github.com/warmpath/warmpath/daemon/lab/vllmsim/engine"
	"github.com/warmpath/warmpath/daemon/lab/vllmsim/msgpack"
)

// Form is a generation of the wire.
type Form string

// The forms. They differ in the events and in the answers to a replay.
const (
	Map   Form = "map"   // vLLM 0.30 to 0.32: an event is a map
	Array Form = "array" // vLLM 0.17 to 0.19: an event is a list
)

// appendBatch appends the payload of one message: [ts, [event, ...], data_parallel_rank].
func (c *Config) appendBatch(b []byte, ts float64, changes []engine.Change) []byte {
	b = msgpack.AppendFloat(msgpack.AppendArray(b, 3), ts)
	b = msgpack.AppendArray(b, len(changes))
	for i := range changes {
		if c.Form == Array {
			b = c.appendArray(b, &changes[i])
		} else {
			b = c.appendMap(b, &changes[i])
		}
	}
	return msgpack.AppendUint(b, uint64(c.Rank))
}

func (c *Config) appendMap(b []byte, ch *engine.Change) []byte {
	key := func(name string) { b = msgpack.AppendString(b, name) }
	onGPU := ch.Medium == engine.OnGPU
	switch ch.Kind {
	case engine.Cleared:
		b = msgpack.AppendMap(b, 1)
		key("type")
		return msgpack.AppendString(b, "AllBlocksCleared")
	case engine.Removed:
		pairs := 3
		if onGPU {
			pairs++
		}
		b = msgpack.AppendMap(b, pairs)
		key("type")
		b = msgpack.AppendString(b, "BlockRemoved")
		key("block_hashes")
		b = appendHashes(b, ch.Hashes)
		key("medium")
		b = msgpack.AppendString(b, mediumName(ch.Medium))
		if onGPU {
			key("group_idx")
			b = msgpack.AppendUint(b, 0)
		}
		return b
	}
	pairs := 8
	if onGPU {
		pairs += 3
	}
	if ch.Session != "" && onGPU {
		pairs++
	}
	b = msgpack.AppendMap(b, pairs)
	key("type")
	b = msgpack.AppendString(b, "BlockStored")
	key("block_hashes")
	b = appendHashes(b, ch.Hashes)
	key("parent_block_hash")
	b = appendParent(b, ch)
	key("token_ids")
	b = appendTokens(b, ch)
	key("block_size")
	b = msgpack.AppendUint(b, c.blockSize(ch))
	key("lora_id")
	b = msgpack.AppendNil(b)
	key("medium")
	b = msgpack.AppendString(b, mediumName(ch.Medium))
	key("lora_name")
	b = msgpack.AppendNil(b)
	if !onGPU {
		return b
	}
	key("extra_keys")
	b = appendExtra(b, ch)
	key("group_idx")
	b = msgpack.AppendUint(b, 0)
	key("kv_cache_spec_kind")
	b = msgpack.AppendString(b, "full_attention")
	if ch.Session != "" {
		key("session_id")
		b = msgpack.AppendString(b, ch.Session)
	}
	return b
}

func (c *Config) appendArray(b []byte, ch *engine.Change) []byte {
	switch ch.Kind {
	case engine.Cleared:
		return msgpack.AppendString(msgpack.AppendArray(b, 1), "AllBlocksCleared")
	case engine.Removed:
		b = msgpack.AppendString(msgpack.AppendArray(b, 3), "BlockRemoved")
		return msgpack.AppendString(appendHashes(b, ch.Hashes), mediumName(ch.Medium))
	}
	b = msgpack.AppendString(msgpack.AppendArray(b, 9), "BlockStored")
	b = appendParent(appendHashes(b, ch.Hashes), ch)
	b = msgpack.AppendUint(appendTokens(b, ch), c.blockSize(ch))
	b = msgpack.AppendNil(b) // lora_id
	b = msgpack.AppendString(b, mediumName(ch.Medium))
	b = msgpack.AppendNil(b) // lora_name
	return appendExtra(b, ch)
}

func mediumName(m engine.Medium) string {
	if m == engine.OnCPU {
		return "CPU"
	}
	return "GPU"
}

// blockSize returns the block size in an event: offloading has 0, and names neither tokens nor parent.
func (c *Config) blockSize(ch *engine.Change) uint64 {
	if ch.Medium == engine.OnCPU {
		return 0
	}
	return uint64(c.BlockSize)
}

func appendHashes(b []byte, hashes []uint64) []byte {
	b = msgpack.AppendArray(b, len(hashes))
	for _, h := range hashes {
		b = msgpack.AppendUint(b, h)
	}
	return b
}

func appendParent(b []byte, ch *engine.Change) []byte {
	if !ch.HasParent || ch.Medium == engine.OnCPU {
		return msgpack.AppendNil(b)
	}
	return msgpack.AppendUint(b, ch.Parent)
}

func appendTokens(b []byte, ch *engine.Change) []byte {
	if ch.Medium == engine.OnCPU {
		return msgpack.AppendArray(b, 0)
	}
	b = msgpack.AppendArray(b, len(ch.Tokens))
	for _, id := range ch.Tokens {
		b = msgpack.AppendUint(b, uint64(id))
	}
	return b
}

// appendExtra appends extra_keys: for each block nil, or for the first of a salted chain the salt.
func appendExtra(b []byte, ch *engine.Change) []byte {
	if ch.Medium == engine.OnCPU {
		return msgpack.AppendNil(b)
	}
	b = msgpack.AppendArray(b, len(ch.Hashes))
	for i := range ch.Hashes {
		if i == 0 && !ch.HasParent && ch.Salt != "" {
			b = msgpack.AppendString(msgpack.AppendArray(b, 1), ch.Salt)
			continue
		}
		b = msgpack.AppendNil(b)
	}
	return b
}
