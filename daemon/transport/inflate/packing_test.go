package inflate

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"io"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
)

// pack packs text in one way: a coding's name, or bare for deflate without zlib's head.
func pack(t testing.TB, way string, text []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	var w io.WriteCloser
	var err error
	switch way {
	case "gzip":
		w = gzip.NewWriter(&b)
	case "deflate":
		w = zlib.NewWriter(&b)
	case "bare":
		w, err = flate.NewWriter(&b, flate.DefaultCompression)
	case "zstd":
		w, err = zstd.NewWriter(&b, zstd.WithEncoderConcurrency(1), zstd.WithZeroFrames(true))
	case "br":
		w = brotli.NewWriter(&b)
	}
	if err == nil {
		_, err = w.Write(text)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// wide packs with a window of so many bytes.
func wide(t testing.TB, text []byte, window int) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := zstd.NewWriter(&b, zstd.WithWindowSize(window), zstd.WithEncoderConcurrency(1), zstd.WithSingleSegment(false))
	if err == nil {
		_, err = w.Write(text)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// unpack reads what a body holds under a Content-Encoding.
func unpack(t testing.TB, field string, packed io.Reader, most int64) ([]byte, error) {
	t.Helper()
	c, err := Parse(field)
	if err != nil {
		t.Fatalf("%q: %v", field, err)
	}
	r := NewReader(packed, c, Bounds{Most: most})
	defer r.Close()
	return io.ReadAll(r)
}
