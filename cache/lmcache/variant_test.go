package lmcache

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// lines calls f with every line of a file of JSON lines.
func lines[T any](t testing.TB, file string, f func(line T)) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if len(text) == 0 {
		t.Fatalf("%s is empty", file)
	}
	for d := json.NewDecoder(bytes.NewReader(text)); d.More(); {
		var line T
		if err := d.Decode(&line); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		f(line)
	}
}

// upTo returns the tokens 1 to n, as the recorded hashes have them.
func upTo(n int) []uint32 {
	ids := make([]uint32, n)
	for i := range ids {
		ids[i] = uint32(i + 1)
	}
	return ids
}

// keysOf computes the keys of all whole chunks, and of the rest if partial is set.
func keysOf(t *testing.T, v Variant, ids []uint32, partial bool) (keys []uint64) {
	t.Helper()
	h, err := newHasher(v)
	if err != nil {
		t.Fatal(err)
	}
	for ; len(ids) >= v.Chunk; ids = ids[v.Chunk:] {
		keys = append(keys, h.next(ids[:v.Chunk]))
	}
	if partial && len(ids) > 0 {
		keys = append(keys, h.next(ids))
	}
	return keys
}

// key reads an int of Python's as a key.
func key(t *testing.T, s string) uint64 {
	t.Helper()
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return uint64(n)
	}
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Every hash recorded from the three releases is computed as they did.
func TestRecordedHashes(t *testing.T) {
	type line struct {
		LMCache, Algorithm, Tokens string
		VLLM                       *string
		Chunk                      int           `json:"chunk_size"`
		None                       json.Number   `json:"none_hash"`
		Hashes                     []json.Number `json:"chunk_hashes"`
	}
	for _, release := range []string{"0.3.9.post2", "0.4.3", "0.5.6"} {
		lines(t, "testdata/"+release+"/hashes.jsonl", func(l line) {
			v := Variant{Chunk: l.Chunk, Algorithm: Algorithm(slices.Index(algorithmNames[:], l.Algorithm)), Folded: true}
			if release != "0.3.9.post2" {
				v.Tail = EmptyTail
			}
			if l.VLLM != nil {
				v.Root = RootSeed
			}
			h, err := newHasher(v)
			if err != nil {
				t.Fatal(err)
			}
			if got, want := h.root.key(), key(t, l.None.String()); got != want {
				t.Errorf("%s %s: the root is %d; want %d", release, l.Algorithm, got, want)
			}
			_, last, _ := strings.Cut(l.Tokens, "..")
			n, _ := strconv.Atoi(last)
			got := keysOf(t, v, upTo(n), v.Tail == NoTail)
			var want []uint64
			for _, h := range l.Hashes {
				want = append(want, key(t, h.String()))
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s %v, tokens %s: keys are %d; want %d", release, v, l.Tokens, got, want)
			}
		})
	}
}

// CPython's own hashes and pickles of numbers at every edge, and of strings under several seeds.
func TestCPython(t *testing.T) {
	type line struct {
		Prefix, Digest, Tail, Hash, Pickle string
		Tokens                             []uint32
		Seed                               *uint32
		Text                               string
	}
	lines(t, "testdata/cpython.jsonl", func(l line) {
		if l.Seed != nil {
			if got := pyString(l.Text, *l.Seed); got != key(t, l.Hash) {
				t.Errorf("hash(%q) with seed %d is %d; want %s", l.Text, *l.Seed, int64(got), l.Hash)
			}
			return
		}
		tail := NoTail
		if l.Tail == "empty" {
			tail = EmptyTail
		}
		var p link
		if l.Digest != "" {
			p = link{digest: true, size: 32}
			digest, _ := hex.DecodeString(l.Digest)
			copy(p.bytes[:], digest)
		} else {
			p = link{number: key(t, l.Prefix), unsigned: !strings.HasPrefix(l.Prefix, "-")}
		}
		if got := hex.EncodeToString(appendPickle(nil, p, l.Tokens, tail)); got != l.Pickle {
			t.Errorf("the pickle of %s%s, %d, %s is\n%s; want\n%s", l.Prefix, l.Digest, l.Tokens, l.Tail, got, l.Pickle)
		}
		if l.Hash == "" || len(l.Prefix) > 0 && p.unsigned && int64(p.number) < 0 {
			return // what hash() returns fits in 64 bits with a sign, so no prefix is beyond
		}
		if got := builtinHash(p, l.Tokens, tail); got != key(t, l.Hash) {
			t.Errorf("hash of %s, %d, %s is %d; want %s", l.Prefix, l.Tokens, l.Tail, int64(got), l.Hash)
		}
	})
}

func TestCBORByHand(t *testing.T) {
	v := Variant{Algorithm: SHA256CBOR, Tail: EmptyTail, Folded: true, Root: RootSeed, Chunk: 16}
	if got := keysOf(t, v, upTo(16), false); got[0] != 8965914961296838014 {
		t.Errorf("the key is %d", got[0])
	}
	// vLLM's own block hash has the unfolded form with None: block (1, 2, 3, 4) of prefix_caching_hash_algo sha256_cbor.
	v = Variant{Algorithm: SHA256CBOR, Root: RootSeed, Chunk: 4}
	if got := keysOf(t, v, upTo(8), false); got[0] != 0xc9d58ba695280d69 || got[1] != 0x24125b23e68883b5 {
		t.Errorf("the keys are %x", got)
	}
	negative := link{number: ^uint64(99)} // -100
	if got := hex.EncodeToString(appendCBOR(nil, negative, []uint32{23, 24, 65536}, NoTail)); got != "8338638317181"+
		"81a00010000f6" {
		t.Errorf("the CBOR is %s", got)
	}
}

func TestChunkSizes(t *testing.T) {
	for _, n := range []int{-1, 0, maxChunk + 1} {
		if _, err := newHasher(Variant{Chunk: n}); err == nil || !strings.Contains(err.Error(), "chunk_size") {
			t.Errorf("a chunk of %d gives %v", n, err)
		}
	}
}

func TestHashingDoesNotAllocate(t *testing.T) {
	ids := upTo(1024)
	for _, v := range forms(0) {
		v.Chunk = 256
		h, err := newHasher(v)
		if err != nil {
			t.Fatal(err)
		}
		h.next(ids[:256])
		if n := testing.AllocsPerRun(10, func() {
			h.reset()
			for i := 0; i < len(ids); i += 256 {
				h.next(ids[i : i+256])
			}
		}); n != 0 {
			t.Errorf("%v: %v allocations", v, n)
		}
	}
}

func BenchmarkHash(b *testing.B) {
	ids := upTo(64 << 10)
	for _, v := range []Variant{{Algorithm: Builtin}, {Algorithm: SHA256}, {Algorithm: SHA256CBOR}, {Algorithm: Blake3}} {
		v.Chunk = 256
		h, _ := newHasher(v)
		b.Run(v.Algorithm.String(), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				h.reset()
				for i := 0; i < len(ids); i += 256 {
					h.next(ids[i : i+256])
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(ids)), "ns/token")
		})
	}
}
