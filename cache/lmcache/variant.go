package lmcache

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"

	"github.com/zeebo/blake3"
)

// Algorithm is the hash function of a chunk: LMCache's pre_caching_hash_algorithm, or --hash-algorithm of its server.
type Algorithm uint8

// The algorithms. Blake3 is known to the multi-process server alone, and its default.
const (
	Builtin Algorithm = iota // CPython's hash()
	SHA256                   // of a pickle
	SHA256CBOR
	Blake3
)

var algorithmNames = [...]string{"builtin", "sha256", "sha256_cbor", "blake3"}

// String returns the name by which LMCache knows it.
func (a Algorithm) String() string { return algorithmNames[a] }

// Root is what stands before the first chunk of a prompt.
type Root uint8

// The roots. RootSeed is vLLM's hash of PYTHONHASHSEED, RootName what vLLM from 0.29 on takes without that variable.
const (
	RootZero Root = iota // no vLLM beside the worker
	RootSeed
	RootName // the hash of "vllm-none-hash"
	RootSelf // the hash of (0, (0,), None): the multi-process server without vLLM
)

var rootNames = [...]string{"0", "PYTHONHASHSEED", "vllm-none-hash", "own"}

// Variant is one way in which a release of LMCache computes the keys of a prompt's chunks.
type Variant struct {
	Algorithm Algorithm
	Tail      Tail
	Folded    bool // a digest becomes its first eight bytes before it enters the next chunk: from 0.4.6 on
	Root      Root
	Seed      uint32 // PYTHONHASHSEED of the workers, for RootSeed
	Chunk     int    // tokens
}

// String returns the variant as logs and pages show it.
func (v Variant) String() string {
	tail := "None"
	if v.Tail == EmptyTail {
		tail = "()"
	}
	parts := []string{v.Algorithm.String(), "tail " + tail, "root " + rootNames[v.Root], "chunk " + strconv.Itoa(v.Chunk)}
	if v.Folded {
		parts = append(parts, "folded")
	}
	return strings.Join(parts, ", ")
}

// forms lists the variants of all releases without their chunk size.
//
// A key is a hash that only tokens and LMCache's release determine (see Variant). An instance reports neither which one
// it uses nor its chunk size. So the learner keeps the start of some recent prompts and tries all variants on them,
// until a key is among the chunks that the instance admits: the second request for a prompt is matched. The
// configuration can name both.
//
//	to 0.3.15     H((parent, tokens, None)), the rest of a prompt is a chunk too
//	0.4.1 on      H((parent, tokens, ()))
//	0.4.6 on      the same, a digest folded to its first eight bytes before it enters the next chunk
//	the server    blake3(parent, tokens as big-endian uint32), or H((parent, tokens, None))
//
// builtin is CPython's hash(): without vLLM it does not depend on PYTHONHASHSEED, beside vLLM its root does. Its None
// form is an address before Python 3.12, so those keys cannot be known; the instance is then warned of and does not
// count.
func forms(seed uint32) []Variant {
	all := []Variant{
		{Algorithm: Blake3, Root: RootSelf},
		{Algorithm: Builtin, Root: RootSelf},
		{Algorithm: Builtin, Tail: EmptyTail},
		{Algorithm: Builtin},
		{Algorithm: Builtin, Tail: EmptyTail, Root: RootSeed},
		{Algorithm: Builtin, Root: RootSeed},
	}
	for _, a := range []Algorithm{SHA256CBOR, SHA256} {
		for _, r := range []Root{RootSeed, RootName} {
			all = append(all,
				Variant{Algorithm: a, Tail: EmptyTail, Folded: true, Root: r},
				Variant{Algorithm: a, Tail: EmptyTail, Root: r},
				Variant{Algorithm: a, Root: r})
		}
	}
	for i := range all {
		all[i].Seed = seed
	}
	return all
}

// hasher computes the keys of one prompt. It is not safe for concurrent use, and computes without allocating once its
// buffer has grown.
type hasher struct {
	v    Variant
	root link
	at   link
	buf  []byte
}

func newHasher(v Variant) (*hasher, error) {
	if v.Chunk < 1 || v.Chunk > maxChunk {
		return nil, fmt.Errorf("lmcache: chunk_size %d; want 1 to %d, as the workers have it", v.Chunk, maxChunk)
	}
	h := &hasher{v: v}
	h.root = h.rootOf()
	h.at = h.root
	return h, nil
}

// maxChunk bounds a chunk. LMCache's default is 256.
const maxChunk = maxPickled

func (h *hasher) rootOf() link {
	switch h.v.Root {
	case RootSeed:
		return h.text(seedText(h.v.Seed))
	case RootName:
		return h.text("vllm-none-hash")
	case RootSelf:
		h.at = link{unsigned: true}
		h.step([]uint32{0}, NoTail)
		return h.at
	}
	return link{unsigned: true}
}

// seedText is PYTHONHASHSEED as vLLM hashes it.
func seedText(seed uint32) string { return strconv.FormatUint(uint64(seed), 10) }

// text returns the hash of a str.
func (h *hasher) text(s string) link {
	switch h.v.Algorithm {
	case SHA256:
		return h.digested(sha256.Sum256(appendPickledString(nil, s)))
	case SHA256CBOR:
		return h.digested(sha256.Sum256(appendCBORString(nil, s)))
	}
	return link{number: pyString(s, h.v.Seed)}
}

// reset goes back to the start of a prompt.
func (h *hasher) reset() { h.at = h.root }

// next returns the key of the next chunk.
func (h *hasher) next(tokens []uint32) uint64 {
	h.step(tokens, h.v.Tail)
	return h.at.key()
}

func (h *hasher) step(tokens []uint32, tail Tail) {
	switch h.v.Algorithm {
	case Builtin:
		h.at = link{number: builtinHash(h.at, tokens, tail)}
	case SHA256:
		h.buf = appendPickle(h.buf[:0], h.at, tokens, tail)
		h.at = h.digested(sha256.Sum256(h.buf))
	case SHA256CBOR:
		h.buf = appendCBOR(h.buf[:0], h.at, tokens, tail)
		h.at = h.digested(sha256.Sum256(h.buf))
	case Blake3:
		if h.at.digest {
			h.buf = append(h.buf[:0], h.at.bytes[:]...)
		} else {
			h.buf = binary.BigEndian.AppendUint64(h.buf[:0], h.at.number)
		}
		for _, t := range tokens {
			h.buf = binary.BigEndian.AppendUint32(h.buf, t)
		}
		h.at = h.digested(blake3.Sum256(h.buf))
	}
}

// digested returns a digest as the variant hands it on.
func (h *hasher) digested(d [32]byte) link {
	if h.v.Folded {
		return link{number: binary.BigEndian.Uint64(d[:8]), unsigned: true}
	}
	return link{digest: true, size: len(d), bytes: d}
}

// builtinHash is hash((prefix, (tokens...), tail)).
func builtinHash(prefix link, tokens []uint32, tail Tail) uint64 {
	inner := newTuple()
	for _, t := range tokens {
		inner.add(uint64(t)) // hash(t) is t below 2^61-1
	}
	outer := newTuple()
	outer.add(pyInt(int64(prefix.number)))
	outer.add(inner.sum())
	if tail == EmptyTail {
		outer.add(hashOfEmpty)
	} else {
		outer.add(hashOfNone)
	}
	return outer.sum()
}

// spread makes of a server's chunk key one of its model and salt, as a server may hold several.
func spread(key, model, salt uint64) uint64 {
	return key ^ model*0x9e3779b97f4a7c15 ^ salt*0xc2b2ae3d27d4eb4f
}

// nameHash is FNV-1a, never 0.
func nameHash(s string) uint64 {
	h := uint64(14695981039346656037)
	for n := range len(s) {
		h = (h ^ uint64(s[n])) * 1099511628211
	}
	return h | 1
}
