package spill

import (
	"bytes"
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
)

// TestDirect writes and reads records of every awkward length, in pieces without alignment, past the page cache and
// through it: both read the same bytes.
func TestDirect(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	ways := []*segment{{file: file}}
	if raw := openDirect(path); raw != nil {
		ways = append(ways, &segment{file: file, raw: raw})
	} else {
		t.Log("this file system has no direct reads and writes")
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	at := int64(0)
	for i, size := range []int{0, 1, 4095, 4096, 4097, bounce - block, bounce, bounce + 1, 3*bounce + 77} {
		for _, g := range ways {
			value := make([]byte, size)
			for i := range value {
				value[i] = byte(rnd.Uint32())
			}
			r := record{state: live, key: string(bytes.Repeat([]byte("k"), 1+i*600)), size: int64(size)}
			if err := g.write(at, &r, cut(rnd, bytes.Clone(value))); err != nil {
				t.Fatal(err)
			}
			st, err := file.Stat()
			if err != nil || st.Size() != at+r.bytes() {
				t.Errorf("%d bytes: the file has %d, %v; want %d", size, st.Size(), err, at+r.bytes())
			}
			for _, from := range ways {
				got := make([]byte, size)
				if err := from.read(context.Background(), at+r.head(), cut(rnd, got)); err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(got, value) {
					t.Errorf("%d bytes, written direct %v and read direct %v, are others", size, g.raw != nil, from.raw != nil)
				}
			}
			if back, err := decode(file, at, st.Size()); err != nil || back != r {
				t.Errorf("%d bytes: the header is %+v, %v", size, back, err)
			}
			at += r.bytes()
		}
	}
	s, err := scan(file, func(int64, record) {})
	if s.torn || s.damaged > 0 || err != nil {
		t.Errorf("%+v, %v", s, err)
	}
}

// cut cuts a value into pieces at any place, as an arena does.
func cut(rnd *rand.Rand, b []byte) (pieces [][]byte) {
	for len(b) > 0 {
		n := 1 + rnd.IntN(len(b))
		pieces = append(pieces, b[:n])
		b = b[n:]
	}
	return pieces
}
