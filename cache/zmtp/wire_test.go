package zmtp

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"
)

func small() Config {
	return Config{Kind: SUB, MaxFrame: 1 << 20, MaxMessage: 2 << 20, MaxFrames: 8}.withDefaults()
}

func TestMessages(t *testing.T) {
	long := bytes.Repeat([]byte("x"), 300)
	f := func(input string, want ...string) {
		t.Helper()
		in, err := hex.DecodeString(strings.ReplaceAll(input, " ", ""))
		if err != nil {
			t.Fatal(err)
		}
		got, err := newReader(bytes.NewReader(in), small()).message()
		if err != nil {
			t.Errorf("%s: %v", input, err)
			return
		}
		if len(got) != len(want) {
			t.Errorf("%s: %d frames; want %d", input, len(got), len(want))
			return
		}
		for i := range want {
			if string(got[i]) != want[i] {
				t.Errorf("%s: frame %d is %q; want %q", input, i, got[i], want[i])
			}
		}
	}
	f("00 02 6869", "hi")
	f("01 02 6869 00 00", "hi", "")
	f("02 0000000000000002 6869", "hi") // a long header may hold a short length
	f("02 000000000000012c"+hex.EncodeToString(long), string(long))
	f("04 06 04 50494e47 00 00 01 61", "a")            // a command before
	f("01 01 61 04 05 04 504f4e47 00 01 62", "a", "b") // and one between two frames
}

func TestBadFrames(t *testing.T) {
	f := func(input []byte, want error) {
		t.Helper()
		if _, err := newReader(bytes.NewReader(input), small()).message(); !errors.Is(err, want) {
			t.Errorf("%.20x: error %v; want %v", input, err, want)
		}
	}
	huge := binary.BigEndian.AppendUint64([]byte{flagLong}, 1<<63)
	frame := append(binary.BigEndian.AppendUint64([]byte{flagLong | flagMore}, 1<<20), make([]byte, 1<<20)...)
	f(nil, io.EOF)
	f([]byte{0}, io.ErrUnexpectedEOF)
	f([]byte{0, 3, 'a'}, io.ErrUnexpectedEOF)
	f([]byte{1, 1, 'a'}, io.EOF)
	f([]byte{8, 0}, errFrame)
	f([]byte{flagCommand | flagMore, 0}, errFrame)
	f([]byte{flagCommand, 0}, errFrame)
	f([]byte{flagCommand, 2, 9, 'a'}, errFrame)
	f(huge, ErrLimit)
	f(append([]byte{flagCommand}, huge...), errFrame)
	f(append([]byte{flagCommand | flagLong}, huge[1:]...), ErrLimit)
	f(bytes.Repeat([]byte{flagMore, 0}, 9), ErrLimit)
	f(bytes.Repeat(frame, 3), ErrLimit)
}

// What is announced costs nothing until it comes.
func TestAnnouncedLengthCostsNothing(t *testing.T) {
	c := Config{MaxFrame: 1 << 40, MaxMessage: 1 << 40}.withDefaults()
	in := append(binary.BigEndian.AppendUint64([]byte{flagLong}, 1<<39), "only this"...)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := newReader(bytes.NewReader(in), c).message(); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > 1<<20 {
		t.Errorf("a frame that says 512 GB and has 9 bytes took %d bytes", got)
	}
}

// The memory of a large message goes with the next one.
func TestBufferIsGivenBack(t *testing.T) {
	in := append(binary.BigEndian.AppendUint64([]byte{flagLong}, 2<<20), make([]byte, 2<<20)...)
	in = append(in, 0, 1, 'a')
	c := Config{}.withDefaults()
	r := newReader(bytes.NewReader(in), c)
	for range 2 {
		if _, err := r.message(); err != nil {
			t.Fatal(err)
		}
	}
	if cap(r.buf) > keepBuffer {
		t.Errorf("the reader keeps %d bytes after a small message", cap(r.buf))
	}
}

func FuzzMessage(f *testing.F) {
	f.Add([]byte("\x00\x02hi"))
	f.Add([]byte("\x01\x02hi\x00\x00"))
	f.Add([]byte("\x04\x06\x04PING\x00\x00\x01a"))
	f.Add(binary.BigEndian.AppendUint64([]byte{flagLong}, 1<<62))
	f.Add(append(greeting(), ready(Config{Kind: PUB})...))
	f.Fuzz(func(t *testing.T, in []byte) {
		c := small()
		r := newReader(bytes.NewReader(in), c)
		total := 0
		for {
			frames, err := r.message()
			if err != nil {
				break
			}
			if len(frames) == 0 || len(frames) > c.MaxFrames {
				t.Fatalf("%d frames", len(frames))
			}
			size := 0
			for _, m := range frames {
				size += len(m)
			}
			total += size
			if size > c.MaxMessage || total > len(in) {
				t.Fatalf("a message of %d bytes, %d in all, out of %d", size, total, len(in))
			}
		}
		if cap(r.buf) > 2*len(in)+2*readStep {
			t.Fatalf("%d bytes kept for %d", cap(r.buf), len(in))
		}
	})
}

func FuzzHandshake(f *testing.F) {
	f.Add(append(greeting(), ready(Config{Kind: PUB})...))
	f.Add(append(greeting(), ready(Config{Kind: ROUTER, Identity: "me"})...))
	f.Add([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		rw := struct {
			io.Reader
			io.Writer
		}{nil, io.Discard}
		p, err := shakeHands(rw, newReader(bytes.NewReader(in), small()), small())
		if err == nil && p.Kind != PUB && p.Kind != "XPUB" {
			t.Fatalf("a SUB shook hands with %q", p.Kind)
		}
	})
}
