package inflate

import (
	"bufio"
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
	f := func(field string, want ...coding) {
		t.Helper()
		c, ok := Parse(field)
		if !ok || !slices.Equal(c.of[:c.n], want) || c.None() != (len(want) == 0) {
			t.Errorf("%q: %v, %v; want %v", field, c.of[:c.n], ok, want)
		}
	}
	f("")
	f("identity")
	f(" , Identity ,")
	f("gzip", gzipped)
	f("X-GZip", gzipped)
	f("deflate,\tzstd", deflated, zstandard)
	f("br, identity", brotlied)
	f("identity, gzip , identity", gzipped)
	f("gzip, gzip, gzip", gzipped, gzipped, gzipped)
	for _, field := range []string{"compress", "gzip, bz2", "gzip;q=1", "*", "gzip gzip", "gzip, gzip, gzip, gzip"} {
		if c, ok := Parse(field); ok {
			t.Errorf("%q is taken for %v", field, c)
		}
	}
}

// TestUnpack: what clients send, in pieces as they come.
func TestUnpack(t *testing.T) {
	short := []byte(`{"model":"m"}`)
	long := bytes.Repeat([]byte("hello "), 3<<19) // 9 MiB: over a window
	noise := make([]byte, 1<<18)
	for i := range noise {
		noise[i] = byte(rand.Int())
	}
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
	lists := map[string][]byte{
		"gzip, zstd":          pack(t, "zstd", pack(t, "gzip", short)),
		"deflate, gzip":       pack(t, "gzip", pack(t, "bare", short)),
		"br, gzip":            pack(t, "gzip", pack(t, "br", short)),
		"zstd, zstd, deflate": pack(t, "deflate", pack(t, "zstd", pack(t, "zstd", short))),
	}
	for field, packed := range lists {
		if got, err := unpack(t, field, bytes.NewReader(packed), room); err != nil || !bytes.Equal(got, short) {
			t.Errorf("%s: %q, %v", field, got, err)
		}
	}
	for _, field := range []string{"gzip", "deflate", "zstd", "br", "gzip, zstd"} {
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
		f("packed twice, cut, "+way, field+", gzip", pack(t, "gzip", packed[:len(packed)-1]))
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
			s := new(stage)
			s.in = bufio.NewReaderSize(nil, 4<<10)
			codings, _ := Parse(field)
			s.begin(bytes.NewReader(c.packed), codings.of[0], room)
			_, _ = io.CopyN(io.Discard, s, c.read)
			s.end()
			s.begin(bytes.NewReader(pack(t, way, next)), codings.of[0], room)
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
		packed := pack(t, "gzip", pack(t, way, bytes.Repeat([]byte("hello "), 1<<16)))
		for _, n := range []int{0, 1, 20, len(packed)} {
			source := io.MultiReader(bytes.NewReader(packed[:n]), iotest.ErrReader(own))
			if _, err := unpack(t, field+", gzip", source, room); err != own {
				t.Errorf("%s, after %d of %d bytes: %v; want %v", way, n, len(packed), err, own)
			}
		}
	}
}

// TestBombs cost their bound: of the body, and of what lies between two codings.
func TestBombs(t *testing.T) {
	const most = 1 << 20
	zeros := make([]byte, 32<<20)
	empties := bytes.Repeat(pack(t, "gzip", nil), most/20) // members that hold nothing
	f := func(field string, packed []byte, want int, fault error) {
		t.Helper()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		c, _ := Parse(field)
		r := NewReader(bytes.NewReader(packed), c, most)
		defer r.Close()
		n, err := io.Copy(io.Discard, r)
		runtime.ReadMemStats(&after)
		if n != int64(want) || !errors.Is(err, fault) {
			t.Errorf("%s of %d bytes: %d, %v; want %d, %v", field, len(packed), n, err, want, fault)
		}
		if took := after.TotalAlloc - before.TotalAlloc; took > 20<<20 {
			t.Errorf("%s: %d bytes were allocated for a bound of %d", field, took, most)
		}
		if again, err2 := r.Read(make([]byte, 9)); again != 0 || err == nil && err2 != io.EOF || err != nil && err2 != err {
			t.Errorf("%s, a Read after its end: %d, %v", field, again, err2)
		}
	}
	for way, field := range map[string]string{"gzip": "gzip", "deflate": "deflate", "bare": "deflate", "zstd": "zstd", "br": "br"} {
		c, _ := Parse(field)
		r := NewReader(bytes.NewReader(pack(t, way, zeros)), c, most)
		n, err := io.Copy(io.Discard, r)
		r.Close()
		if n > most || !errors.Is(err, ErrTooLong) {
			t.Errorf("%s: %d bytes, %v; want at most %d, %v", way, n, err, most, ErrTooLong)
		}
		f(field, pack(t, way, zeros[:most]), most, nil)
	}
	c, _ := Parse("gzip, gzip")
	r := NewReader(bytes.NewReader(pack(t, "gzip", append(empties, empties...))), c, most)
	defer r.Close()
	if n, err := io.Copy(io.Discard, r); n != 0 || !errors.Is(err, ErrTooLong) {
		t.Errorf("empty members, packed again: %d, %v; want 0, %v", n, err, ErrTooLong)
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
		f.Add(way+", gzip", pack(f, "gzip", pack(f, way, text)))
	}
	f.Add("zstd", []byte("\x50\x2a\x4d\x18\x04\x00\x00\x00skip")) // a frame to be skipped
	f.Fuzz(func(t *testing.T, field string, packed []byte) {
		c, ok := Parse(field)
		if !ok || c.None() {
			return
		}
		const most = 1 << 16
		r := NewReader(bytes.NewReader(packed), c, most)
		defer r.Close()
		got, err := io.ReadAll(r)
		if len(got) > most || err != nil && !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrTooLong) {
			t.Errorf("%q of %q: %d bytes, %v", field, packed, len(got), err)
		}
		again := NewReader(iotest.OneByteReader(bytes.NewReader(packed)), c, most)
		defer again.Close()
		if same, err2 := io.ReadAll(again); (err == nil) != (err2 == nil) || err == nil && !bytes.Equal(got, same) {
			t.Errorf("%q of %q, byte by byte: %d bytes, %v; at once %d, %v", field, packed, len(same), err2, len(got), err)
		}
	})
}
