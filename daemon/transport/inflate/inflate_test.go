package inflate

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/andybalholm/brotli"
)

const room = 64 << 20

func TestParse(t *testing.T) {
	f := func(field string, want Coding, fault error) {
		t.Helper()
		if c, err := Parse(field); err != fault || err == nil && c != want {
			t.Errorf("%q: %v, %v; want %v, %v", field, c, err, want, fault)
		}
	}
	f("", None, nil)
	f("identity", None, nil)
	f(" , Identity ,", None, nil)
	f("gzip", gzipped, nil)
	f("X-GZip", gzipped, nil)
	f("\tdeflate", deflated, nil)
	f("zstd", zstandard, nil)
	f("br, identity", brotlied, nil)
	f("identity, gzip , identity", gzipped, nil)
	for _, field := range []string{"gzip, gzip", "deflate,zstd", "gzip, identity, br"} {
		f(field, None, ErrTwice)
	}
	for _, field := range []string{"compress", "gzip, bz2", "gzip;q=1", "*", "gzip gzip", "gzip, gzip, bz2"} {
		f(field, None, ErrUnknown)
	}
}

// TestUnpack: what clients send, in pieces as they come.
func TestUnpack(t *testing.T) {
	short := []byte(`{"model":"m"}`)
	noise := make([]byte, 1<<18)
	for i := range noise {
		noise[i] = byte(rand.Int())
	}
	long := bytes.Repeat(append(bytes.Repeat([]byte("hello "), 1<<17), noise...), 9) // 9 MiB: over a window
	f := func(field, way string, text []byte) {
		t.Helper()
		packed := pack(t, way, text)
		if got, err := unpack(t, field, bytes.NewReader(packed), room); err != nil || !bytes.Equal(got, text) {
			t.Errorf("%s as %s, %d bytes: %d, %v", way, field, len(text), len(got), err)
		}
		if len(packed) > 1<<12 {
			return
		}
		if got, err := unpack(t, field, iotest.OneByteReader(bytes.NewReader(packed)), room); err != nil || !bytes.Equal(got, text) {
			t.Errorf("%s as %s, %d bytes, byte by byte: %d, %v", way, field, len(text), len(got), err)
		}
	}
	for range 2 { // the decoders serve again
		for _, text := range [][]byte{nil, short, long, noise} {
			f("gzip", "gzip", text)
			f("x-gzip", "gzip", text)
			f("deflate", "deflate", text)
			f("deflate", "bare", text)
			f("zstd", "zstd", text)
			f("br", "br", text)
		}
	}
	for _, field := range []string{"gzip", "deflate", "zstd", "br"} {
		if got, err := unpack(t, field, strings.NewReader(""), room); err != nil || len(got) != 0 {
			t.Errorf("an empty body in %s: %q, %v", field, got, err)
		}
	}
	for _, way := range []string{"gzip", "zstd"} { // members and frames are one text
		packed := append(pack(t, way, short), pack(t, way, long)...)
		if got, err := unpack(t, way, bytes.NewReader(packed), room); err != nil || len(got) != len(short)+len(long) {
			t.Errorf("two of %s: %d, %v", way, len(got), err)
		}
	}
}

// TestCorrupt: a body that ends early, goes on behind its end, or is something else.
func TestCorrupt(t *testing.T) {
	text := bytes.Repeat([]byte(`{"model":"m","x":"abcdef"}`), 3000)
	f := func(what, field string, packed []byte) {
		t.Helper()
		if got, err := unpack(t, field, bytes.NewReader(packed), room); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s in %s: %d bytes, %v; want %v", what, field, len(got), err, ErrCorrupt)
		}
	}
	for way, field := range map[string]string{"gzip": "gzip", "deflate": "deflate", "bare": "deflate", "zstd": "zstd", "br": "br"} {
		packed := pack(t, way, text)
		for _, n := range []int{1, 2, 3, len(packed) / 2, len(packed) - 1} {
			f("cut, "+way, field, packed[:n])
		}
		f("garbage behind, "+way, field, append(slices.Clone(packed), "garbage"...))
		f("a line behind, "+way, field, append(slices.Clone(packed), '\n'))
		f("plain JSON", field, text)
	}
	f("gzip", "zstd", pack(t, "gzip", text))
	f("zstd", "gzip", pack(t, "zstd", text))
	sum := pack(t, "gzip", text)
	sum[len(sum)-6] ^= 1
	f("a wrong checksum", "gzip", sum)
	f("a window of 16 MiB", "zstd", wide(t, bytes.Repeat([]byte("0123456789abcdef"), 2<<20), 16<<20))
	for bits, fault := range map[int]error{23: nil, 24: ErrCorrupt} {
		var b bytes.Buffer
		w := brotli.NewWriterOptions(&b, brotli.WriterOptions{LGWin: bits})
		_, _ = w.Write(text)
		_ = w.Close()
		if _, err := unpack(t, "br", &b, room); !errors.Is(err, fault) {
			t.Errorf("br with a window of 2^%d: %v; want %v", bits, err, fault)
		}
	}
	if got, err := unpack(t, "zstd", bytes.NewReader(wide(t, text, 8<<20)), room); err != nil || len(got) != len(text) {
		t.Errorf("a window of 8 MiB: %d, %v", len(got), err)
	}
}

// TestLeftMidBody: a decoder that was left in the middle of a body, or failed, serves the next one as a new one does.
func TestLeftMidBody(t *testing.T) {
	other, next := make([]byte, 1<<18), bytes.Repeat([]byte("mine "), 999)
	for i := range other {
		other[i] = "abcdefgh"[rand.IntN(8)]
	}
	for way, field := range map[string]string{"gzip": "gzip", "deflate": "deflate", "bare": "deflate", "zstd": "zstd", "br": "br"} {
		left := pack(t, way, other)
		if way == "br" { // with a window that fills while there is input left
			var b bytes.Buffer
			w := brotli.NewWriterOptions(&b, brotli.WriterOptions{Quality: 5, LGWin: 16})
			_, _ = w.Write(other)
			_ = w.Close()
			left = b.Bytes()
		}
		broken := slices.Clone(left)
		broken[len(broken)/2] ^= 0xff
		for what, c := range map[string]struct {
			packed []byte
			read   int64
		}{"unread": {left, 0}, "left": {left, 1000}, "left later": {left, 38_777}, "left near its end": {left, 189_885},
			"cut": {left[:len(left)/2], 1 << 20}, "broken": {broken, 1 << 20}} {
			s := newStage()
			coding, _ := Parse(field)
			s.begin(bytes.NewReader(c.packed), coding, Bounds{Most: room})
			_, _ = io.CopyN(io.Discard, s, c.read)
			s.end()
			s.begin(bytes.NewReader(pack(t, way, next)), coding, Bounds{Most: room})
			if got, err := io.ReadAll(s); err != nil || !bytes.Equal(got, next) {
				t.Errorf("%s after a body that was %s: %d bytes, %v", way, what, len(got), err)
			}
		}
	}
}

// TestTheSourcesOwnError is not taken for a corrupt body.
func TestTheSourcesOwnError(t *testing.T) {
	own := errors.New("the client left")
	for way, field := range map[string]string{"gzip": "gzip", "deflate": "deflate", "bare": "deflate", "zstd": "zstd", "br": "br"} {
		packed := pack(t, way, bytes.Repeat([]byte("hello "), 1<<16))
		for _, n := range []int{0, 1, len(packed) / 2, len(packed) - 1} {
			source := io.MultiReader(bytes.NewReader(packed[:n]), iotest.ErrReader(own))
			if _, err := unpack(t, field, source, room); err != own {
				t.Errorf("%s, after %d of %d bytes: %v; want %v", way, n, len(packed), err, own)
			}
		}
	}
}

// TestBombs: a body of 1 MiB passes, however it was packed. A longer one is at most 100 times what has come of it, and
// within its own bound.
func TestBombs(t *testing.T) {
	zeros := make([]byte, 32<<20)
	noise := make([]byte, 64<<10)
	for i := range noise {
		noise[i] = byte(rand.Int())
	}
	f := func(what, field string, packed []byte, most int64, want int64, fault error) {
		t.Helper()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		c, _ := Parse(field)
		r := NewReader(bytes.NewReader(packed), c, Bounds{Most: most})
		defer r.Close()
		n, err := io.Copy(io.Discard, r)
		runtime.ReadMemStats(&after)
		if err == nil && n != want || n > want || !errors.Is(err, fault) {
			t.Errorf("%s in %s, %d bytes: %d, %v; want %d, %v", what, field, len(packed), n, err, want, fault)
		}
		if took := after.TotalAlloc - before.TotalAlloc; took > 20<<20 {
			t.Errorf("%s in %s: %d bytes were allocated", what, field, took)
		}
		if again, err2 := r.Read(make([]byte, 9)); again != 0 || err == nil && err2 != io.EOF || err != nil && err2 != err {
			t.Errorf("%s in %s, a Read after its end: %d, %v", what, field, again, err2)
		}
	}
	for way, field := range map[string]string{"gzip": "gzip", "deflate": "deflate", "bare": "deflate", "zstd": "zstd", "br": "br"} {
		f("1 MiB", field, pack(t, way, zeros[:freeBytes]), room, freeBytes, nil)
		f("1 MiB and a byte", field, pack(t, way, zeros[:freeBytes+1]), room, freeBytes, ErrGrows)
		f("32 MiB", field, pack(t, way, zeros), room, freeBytes, ErrGrows)
		f("its own bound", field, pack(t, way, zeros[:1000]), 999, 999, ErrTooLong)
		f("noise before 5 MiB", field, pack(t, way, append(slices.Clone(noise), zeros[:5<<20]...)), room, 5<<20+64<<10, nil)
		packed := pack(t, way, append(slices.Clone(noise), zeros...))
		f("noise before 32 MiB", field, packed, room, int64(maxGrowth*len(packed)), ErrGrows)
	}
	for _, way := range []string{"gzip", "zstd"} {
		f("many members", way, bytes.Repeat(pack(t, way, zeros[:64<<10]), 100), room, freeBytes, ErrGrows)
		f("empty members", way, bytes.Repeat(pack(t, way, nil), 50_000), room, 0, nil)
	}
}

// asking is a Memory.
type asking func(bytes int) bool

func (a asking) Reserve(bytes int) bool { return a(bytes) }

// TestRoomOfDecoders: each decoder asks for its memory before it takes it, each frame of zstd anew, and none takes more
// (but for what a test's own garbage takes).
func TestRoomOfDecoders(t *testing.T) {
	text := make([]byte, 640<<10)
	for i := range text {
		text[i] = "abcdefgh"[rand.IntN(8)]
	}
	br := func(bits int) []byte {
		var b bytes.Buffer
		w := brotli.NewWriterOptions(&b, brotli.WriterOptions{LGWin: bits})
		_, _ = w.Write(text)
		_ = w.Close()
		return b.Bytes()
	}
	small, large := wide(t, text, 1<<16), wide(t, text, 8<<20)
	skipped := append([]byte("\x50\x2a\x4d\x18\x04\x00\x00\x00skip"), large...)
	const leastZstd, mostZstd = leastWindow + zstdBytes, maxWindow + zstdBytes
	f := func(field string, packed []byte, want ...int) {
		t.Helper()
		coding, _ := Parse(field)
		for refuse := range len(want) + 1 {
			var asked []int
			s := newStage()
			s.begin(bytes.NewReader(packed), coding, Bounds{Most: room, Memory: asking(func(n int) bool {
				asked = append(asked, n)
				return len(asked) != refuse
			})})
			_, err := io.Copy(io.Discard, s)
			wanted := want
			if refuse > 0 {
				wanted = want[:refuse]
			}
			if !slices.Equal(asked, wanted) || (err == ErrNoRoom) != (refuse > 0) {
				t.Errorf("%s: %v were asked for, %v; want %v", field, asked, err, wanted)
			}
			s.end()
		}
		live := func() int64 {
			var m runtime.MemStats
			runtime.GC()
			runtime.GC()
			runtime.ReadMemStats(&m)
			return int64(m.HeapAlloc)
		}
		var all []*stage
		before := live()
		for range 8 {
			s := newStage()
			s.begin(bytes.NewReader(packed), coding, Bounds{Most: room})
			_, _ = io.CopyN(io.Discard, s, int64(len(text)*len(want)-5000))
			all = append(all, s)
		}
		if took := (live() - before) / 8; took > int64(slices.Max(want)) {
			t.Errorf("%s: %d bytes are held; want %v", field, took, want)
		}
		runtime.KeepAlive(all)
	}
	f("gzip", pack(t, "gzip", text), flateBytes)
	f("deflate", pack(t, "deflate", text), flateBytes)
	f("zstd", small, leastZstd)
	f("zstd", large, mostZstd)
	f("zstd", slices.Concat(small, large, small), leastZstd, mostZstd, mostZstd)
	f("zstd", skipped, leastZstd, mostZstd)
	f("br", br(16), leastWindow+brotliBytes)
	f("br", br(20), leastWindow+brotliBytes)
	f("br", br(22), 4<<20+brotliBytes)
	f("br", br(23), maxWindow+brotliBytes)
	pooled := newStage() // what a decoder of an earlier body holds counts, or it is dropped
	for _, packed := range [][]byte{large, small} {
		pooled.begin(bytes.NewReader(packed), zstandard, Bounds{Most: room})
		_, _ = io.Copy(io.Discard, pooled)
		pooled.end()
	}
	if pooled.holds != leastZstd {
		t.Errorf("%d bytes are held after a short window", pooled.holds)
	}
}

// FuzzReader: no body makes a reader panic, give more than its bound, or fail with an error of another kind.
func FuzzReader(f *testing.F) {
	text := []byte(`{"model":"m","messages":[{"role":"user","content":"hi"}]}`)
	for _, way := range []string{"gzip", "deflate", "bare", "zstd", "br"} {
		f.Add("br", pack(f, way, text))
		f.Add("gzip", pack(f, way, text))
		f.Add("deflate", pack(f, way, text))
		f.Add("zstd", pack(f, way, text))
	}
	f.Add("zstd", []byte("\x50\x2a\x4d\x18\x04\x00\x00\x00skip")) // a frame to be skipped
	f.Fuzz(func(t *testing.T, field string, packed []byte) {
		c, err := Parse(field)
		if err != nil || c == None {
			return
		}
		const most = 1 << 16
		r := NewReader(bytes.NewReader(packed), c, Bounds{Most: most})
		defer r.Close()
		got, err := io.ReadAll(r)
		if len(got) > most || err != nil && !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrTooLong) {
			t.Errorf("%q of %q: %d bytes, %v", field, packed, len(got), err)
		}
		again := NewReader(iotest.OneByteReader(bytes.NewReader(packed)), c, Bounds{Most: most})
		defer again.Close()
		if same, err2 := io.ReadAll(again); (err == nil) != (err2 == nil) || err == nil && !bytes.Equal(got, same) {
			t.Errorf("%q of %q, byte by byte: %d bytes, %v; at once %d, %v", field, packed, len(same), err2, len(got), err)
		}
	})
}
