package chunks

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"testing"
)

// The keys of three releases of LMCache and of its multi-process servers, as they were recorded.
func TestKeys(t *testing.T) {
	f := func(key, want string) {
		t.Helper()
		k, ok := ParseKey(key)
		got := "none"
		if ok {
			got = fmt.Sprintf("%s %s %d", k.Model, k.Part, k.Kind)
		}
		if got != want {
			t.Errorf("%q: %s; want %s", key, got, want)
		}
	}
	f("vllm@test/model-1b@1@0@123456789abcdef@bfloat16metadata", "test/model-1b 0 1")
	f("vllm@test/model-1b@1@0@-2294039be7007e5a@bfloat16kv_bytes", "test/model-1b 0 2")
	f("test/model-1b@1@0@55@bfloat16@user%alicekv_bytes", "test/model-1b 0 2")
	f("test/model-1b@1@0@b000@bfloat16", "test/model-1b 0 0")
	f("test/model-1b@4@3@b000@bfloat16@17", "test/model-1b 3@17 0")
	f("test/model-1b@4@3@b000@bfloat16@17@user%17", "test/model-1b 3@17 0")
	f("test/model-1b@1@0@a2@bfloat16@user%al ice/é", "test/model-1b 0 0")
	f("org/tiny@01000100@0@de348128be77bfd0a0a35ce495b219ef6c765d40039661017565f96880b7cad0", "org/tiny 01000100@0 0")
	f("org/tiny@01000100@0@de348128be77bfd0@a salt", "org/tiny 01000100@0 0")
	f("h\almcache", "none")
	f("h\almcachevllm@org/tiny@1@0@ab@half", "org/tiny 0 0")
	f("r\x00org/tiny@1@0@ab@half", "org/tiny 0 0")
	f("r\x0fvllm@org/tiny@1@0@ab@half", "org/tiny 0 0")
	f("h\x1forg/tiny@1@0@ab@half", "none")
	f("hub/tiny@1@0@ab@half", "hub/tiny 0 0")
	f("", "none")
	f("a", "none")
	f("a@1@2", "none")
	f("a\xff@1@2@3@half", "none")
	f("@1@2@3@half", "none")
	f("a@x@2@3@half", "none")
	f("a@1@2@zz@half", "none")
	f("a@1@2@@half", "none")
	f(strings.Repeat("a", 257)+"@1@2@3@half", "none")
}

// TestKeyOfServer: a multi-process server's key contains all that its events contain about the chunk.
func TestKeyOfServer(t *testing.T) {
	f := func(key, want string) {
		t.Helper()
		k, ok := ParseKey(key)
		if got := fmt.Sprintf("%q %q %s %#x %q", k.Door, k.Model, k.Hash, k.Rank, k.Salt); got != want || !ok {
			t.Errorf("%q: %s, %v; want %s", key, got, ok, want)
		}
	}
	f("r\x00org/tiny@02010201@0@de348128be77bfd0", `'r' "org/tiny" de348128be77bfd0 0x2010201 ""`)
	f("h\x07lmcacheorg/tiny@01000100@0@de348128be77bfd0@a salt@2", `'h' "org/tiny" de348128be77bfd0 0x1000100 "a salt@2"`)
	f("org/tiny@01000100@1@de348128be77bfd0", `'\x00' "org/tiny" de348128be77bfd0 0x1000100 ""`)
	f("r\x00org/tiny@1@0@-ab@half@3", `'r' "org/tiny" -ab 0x0 ""`)
	f("r\x00team a@org/tiny@01000100@0@de348128be77bfd0", `'r' "org/tiny" de348128be77bfd0 0x1000100 ""`)
	f("r\x00vllm@org/tiny@01000100@0@de348128be77bfd0@a salt", `'r' "org/tiny" de348128be77bfd0 0x1000100 "a salt"`)
	f("r\x00team@ab12@01000100@0@de348128be77bfd0@5", `'r' "ab12" de348128be77bfd0 0x1000100 "5"`)
	f("r\x00team@deadbeef@01000100@0@de348128be77bfd0", `'r' "deadbeef" de348128be77bfd0 0x1000100 ""`)
	f("r\x00team@8@01000100@0@de348128be77bfd0", `'r' "8" de348128be77bfd0 0x1000100 ""`)
}

// metadata packs numbers as LMCache does: little-endian int32s.
func metadata(numbers ...int32) (b []byte) {
	for _, n := range numbers {
		b = binary.LittleEndian.AppendUint32(b, uint32(n))
	}
	return b
}

func TestMetadata(t *testing.T) {
	f := func(b []byte, length, tokens int64, want bool) {
		t.Helper()
		s, ok := parseMetadata(b)
		if ok != want || ok && (s.length != length || s.tokens != tokens) {
			t.Errorf("%x: %+v, %v; want %d bytes, %d tokens, %v", b, s, ok, length, tokens, want)
		}
	}
	f(metadata(32<<20, 1, 3, 2, 32, 256, 1024), 32<<20, 256, true)
	f(metadata(512, 1, 3, 2, 1, 16, 8), 512, 16, true)
	f(metadata(1<<20, 2, 3, 256, 2, 1024, 0), 1<<20, 256, true)
	f(metadata(1<<20, 3, 3, 2, 256, 1024, 0), 1<<20, 256, true)
	f(metadata(1<<20, 6, 3, 1, 27, 256, 576), 1<<20, 256, true)
	f(metadata(700, 4, 6, 700, 0, 0, 0), 700, 0, true)
	f(metadata(0, 1, 3, 2, 32, 256, 1024), 0, 0, false)
	f(metadata(-1, 1, 3, 2, 32, 256, 1024), 0, 0, false)
	f(metadata(1<<20, 7, 3, 2, 32, 256, 1024), 0, 0, false)
	f(metadata(1<<20, 1, 3, 2, -32, 256, 1024), 0, 0, false)
	f(metadata(100, 1, 3, 2, 32, 256, 1024), 0, 0, false)
	f(metadata(1<<20, 1, 3, 2, 32, 256, 1024)[:27], 0, 0, false)
	f([]byte(strings.Repeat("\x11", 28)), 0, 0, false)
}

const gib = 1 << 30

// within reports whether two figures differ by less than a thousandth.
func within(a, b float64) bool { return math.Abs(a-b) <= math.Abs(b)/1000 }

func TestEstimate(t *testing.T) {
	f := func(what string, chunk int, tokens float64, guessed, chunkGuessed bool, put func(m *Meter)) {
		t.Helper()
		m := NewMeter(gib, chunk)
		put(m)
		e := m.Estimate(gib)
		if !within(float64(e.Tokens), tokens) || e.Guessed != guessed || e.ChunkGuessed != chunkGuessed {
			t.Errorf("%s: %+v; want %.0f tokens, guessed %v, chunk guessed %v", what, e, tokens, guessed, chunkGuessed)
		}
	}
	const mib = 1 << 20
	f("nothing", 0, 0, false, true, func(*Meter) {})
	f("no KV", 0, 0, false, true, func(m *Meter) { m.Put("a", mib, nil) })
	f("a payload alone", 0, 0, false, true, func(m *Meter) { m.Put("m@1@0@a@halfkv_bytes", mib, make([]byte, 28)) })
	f("redis://, 128 KiB a token", 0, 8192*32/33., false, true, func(m *Meter) {
		for i := range 4 { // the last chunk is not full
			tokens := int32([]int{256, 256, 256, 64}[i])
			key := fmt.Sprintf("m@1@0@%x@half", i)
			m.Put(key+"kv_bytes", int64(tokens)<<17, make([]byte, 28))
			m.Put(key+"metadata", 28, metadata(tokens<<17, 1, 3, 2, 32, tokens, 1024))
		}
		m.Put("notes", 104<<20/32, nil) // a 33rd of the bytes
	})
	f("hyperpod://", 0, 8192, false, true, func(m *Meter) {
		m.Put("h\almcachem@1@0@a@half", 32*mib+28, append(metadata(32*mib, 1, 3, 2, 32, 256, 1024), 9, 9))
	})
	f("resp://, LMCache's own chunks", 0, 8192, true, true, func(m *Meter) { m.Put("m@1@0@a@half", 32*mib, make([]byte, 28)) })
	f("resp://, chunks of 512", 512, 16384, true, false, func(m *Meter) { m.Put("m@1@0@a@half", 32*mib, make([]byte, 28)) })
	f("four ranks", 256, 2048, true, false, func(m *Meter) {
		for i := range 16 {
			m.Put(fmt.Sprintf("m@4@%d@%x@half", i%4, i/4), 32*mib, nil)
		}
	})
	f("two layers of two ranks", 256, 2048, true, false, func(m *Meter) {
		for i := range 16 {
			m.Put(fmt.Sprintf("m@2@%d@%x@half@%d", i%2, i/4, i/2%2), 32*mib, nil)
		}
	})
	f("two models that share it", 256, 8192/2+65536/2, true, false, func(m *Meter) {
		for i := range 8 {
			m.Put(fmt.Sprintf("small@1@0@%x@half", i), 4*mib, nil)
		}
		m.Put("large@1@0@1@half", 32*mib, nil)
	})
	f("a liar", 256, gib/1024, true, false, func(m *Meter) { m.Put("m@1@0@a@half", 1, nil) })
}

// The tokens of a value, once read, stay in force; a model without further puts is dropped.
func TestWhatIsOldGoes(t *testing.T) {
	m := NewMeter(1000<<20, 256)
	for i := range 100 {
		m.Put(fmt.Sprintf("old@1@0@%x@half", i), 8<<20, nil)
	}
	for i := range 20_000 {
		m.Put(fmt.Sprintf("new@1@0@%x@half", i), 32<<20, nil)
	}
	e := m.Estimate(1000 << 20)
	if len(e.Models) != 1 || e.Models[0].Name != "new" || !within(e.Models[0].BytesPerToken, 128<<10) || e.Tokens < 7999 {
		t.Errorf("%+v", e)
	}
}

func TestBounds(t *testing.T) {
	m := NewMeter(gib, 256)
	for i := range maxModels + 50 {
		m.Put(fmt.Sprintf("m%d@1@0@1@half", i), 1<<20, nil)
	}
	for i := range maxParts + 50 {
		m.Put(fmt.Sprintf("m1@1@%x@1@half", i), 1<<20, nil)
	}
	if len(m.models) != maxModels || len(m.models["m1"].parts) != maxParts {
		t.Errorf("%d models, %d parts", len(m.models), len(m.models["m1"].parts))
	}
}

func FuzzPut(f *testing.F) {
	f.Add("m@1@0@a@halfmetadata", int64(28), metadata(32<<20, 1, 3, 2, 32, 256, 1024))
	f.Add("m@01000100@0@a@half", int64(1<<20), []byte("x"))
	f.Add("vllm@m@1@0@-a@half@3@t%v", int64(0), []byte{})
	f.Add("0@0@0@0", int64(1<<40-1), []byte{}) // more than the tier at once
	f.Fuzz(func(t *testing.T, key string, size int64, head []byte) {
		m := NewMeter(gib, 0)
		m.Put(key, size&(1<<40-1), head)
		m.Put("m@1@0@a@half", 1<<20, nil)
		e := m.Estimate(gib)
		if e.Tokens < 0 || e.Tokens > gib/minBytes {
			t.Errorf("%+v", e)
		}
		for _, model := range e.Models {
			if math.IsNaN(model.BytesPerToken) || math.IsInf(model.BytesPerToken, 0) || model.Share < 0 || model.Share > 1 {
				t.Errorf("%+v", model)
			}
		}
	})
}

func BenchmarkPut(b *testing.B) {
	m := NewMeter(64<<30, 256)
	head := metadata(32<<20, 1, 2, 2, 32, 256, 1024)
	var keys []string
	for i := range 1 << 10 {
		keys = append(keys, fmt.Sprintf("r\x00vllm@org/model-8b@8@%d@%016x@bfloat16metadata", i%8, i*i))
	}
	for i := 0; b.Loop(); i++ {
		m.Put(keys[i%len(keys)], int64(len(head)), head)
	}
}
