package sagemaker

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"
)

// source gives one piece a read, then err.
type source struct {
	pieces []string
	err    error
	closed int
}

func (s *source) Read(p []byte) (int, error) {
	if len(s.pieces) == 0 {
		return 0, s.err
	}
	n := copy(p, s.pieces[0])
	if s.pieces[0] = s.pieces[0][n:]; s.pieces[0] == "" {
		s.pieces = s.pieces[1:]
	}
	return n, nil
}

func (s *source) Close() error { s.closed++; return errors.New("closed") }

// events decodes a stream to its end as the SDK does: "type: payload".
func events(t *testing.T, b []byte) (all []string, text string) {
	t.Helper()
	d := eventstream.NewDecoder()
	for r := bytes.NewReader(b); r.Len() > 0; {
		m, err := d.Decode(r, nil)
		if err != nil {
			t.Fatalf("after %q: %v", all, err)
		}
		kind := m.Headers.Get(":event-type")
		if kind == nil {
			kind = m.Headers.Get(":exception-type")
		} else {
			text += string(m.Payload)
		}
		all = append(all, fmt.Sprintf("%s: %s", kind, m.Payload))
	}
	return all, text
}

// The bytes were made with struct and zlib of Python from the format's description, and read by botocore.
const (
	goldenPart = "0000007800000059be379d370b3a6576656e742d7479706507000b5061796c6f6164506172740d3a636f6e74656e742d7479" +
		"70650700186170706c69636174696f6e2f6f637465742d73747265616d0d3a6d6573736167652d747970650700056576656e" +
		"74646174613a207b2278223a317d0a0a3da38c34"
	goldenBroken = "000000c60000005e8fa4bee10f3a657863657074696f6e2d747970650700104d6f64656c53747265616d4572726f720d3a63" +
		"6f6e74656e742d747970650700106170706c69636174696f6e2f6a736f6e0d3a6d6573736167652d74797065070009657863" +
		"657074696f6e7b224d657373616765223a22746865206d6f64656c2062726f6b65206f666620696e20746865206d6964646c" +
		"65206f662069747320616e73776572222c224572726f72436f6465223a2253747265616d42726f6b656e227d878c6ee5"
)

func TestAStreamInBytes(t *testing.T) {
	s := NewStream(&source{pieces: []string{"data: {\"x\":1}\n\n"}, err: io.ErrUnexpectedEOF}, nil)
	got, err := io.ReadAll(s)
	if err != nil || hex.EncodeToString(got) != goldenPart+goldenBroken {
		t.Fatalf("%v: %x", err, got)
	}
}

func TestOneReadIsOneEvent(t *testing.T) {
	src := &source{pieces: []string{"data: a\n\n", "data: b\n\n", "data: [DONE]\n\n"}, err: io.EOF}
	s := NewStream(src, nil)
	buf := make([]byte, 4096)
	for _, want := range []string{"PayloadPart: data: a\n\n", "PayloadPart: data: b\n\n", "PayloadPart: data: [DONE]\n\n"} {
		n, err := s.Read(buf)
		if all, _ := events(t, buf[:n]); err != nil || len(all) != 1 || all[0] != want {
			t.Fatalf("%q, %v; want %q", all, err, want)
		}
	}
	for range 2 {
		if n, err := s.Read(buf); n != 0 || err != io.EOF {
			t.Fatalf("%d, %v at the end", n, err)
		}
	}
	if err := s.Close(); src.closed != 1 || err == nil || err.Error() != "closed" {
		t.Fatalf("closed %d times, %v", src.closed, err)
	}
}

func TestWhatAnErrorBecomes(t *testing.T) {
	f := func(src error, tell func(error) StreamError, want string) {
		t.Helper()
		b, err := io.ReadAll(NewStream(&source{pieces: []string{"x"}, err: src}, tell))
		all, text := events(t, b)
		if err != nil || text != "x" || len(all) != 2 || all[1] != want {
			t.Errorf("%v: %q, %v; want %q at the end", src, all, err, want)
		}
	}
	const late = `ModelStreamError: {"Message":"the model did not go on with its answer in time","ErrorCode":"ModelInvocationTimeExceeded"}`
	const broken = `ModelStreamError: {"Message":"the model broke off in the middle of its answer","ErrorCode":"StreamBroken"}`
	f(errors.New("dial tcp 10.0.0.1:8000"), nil, broken)
	f(io.ErrUnexpectedEOF, nil, broken)
	f(fmt.Errorf("reading: %w", context.DeadlineExceeded), nil, late)
	f(fmt.Errorf("reading: %w", os.ErrDeadlineExceeded), nil, late)
	f(errors.New("x"), func(error) StreamError { return InternalStreamFailure("this router is stopping") },
		`InternalStreamFailure: {"Message":"this router is stopping"}`)
}

func TestAnErrorBeforeTheFirstByte(t *testing.T) {
	b, err := io.ReadAll(NewStream(&source{err: errors.New("x")}, nil))
	if all, _ := events(t, b); err != nil || len(all) != 1 || !strings.HasPrefix(all[0], "ModelStreamError") {
		t.Fatalf("%q, %v", all, err)
	}
	if b, err := io.ReadAll(NewStream(&source{err: io.EOF}, nil)); err != nil || len(b) != 0 {
		t.Fatalf("an empty answer is %x, %v", b, err)
	}
}

// Whatever the sizes of the reads on both sides, the bytes come through, and no event is larger than the bound.
func TestAnyReadSizes(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	text := strings.Repeat("0123456789abcdef", 20_000)
	for _, size := range []int{1, 7, 100, 1 << 10, 4 << 10, 64 << 10, 1 << 20} {
		src := io.NopCloser(iotest.DataErrReader(strings.NewReader(text[:min(len(text), size*1000)])))
		s := NewStream(src, nil)
		var got []byte
		for buf := make([]byte, size); ; {
			n, err := s.Read(buf[:1+r.IntN(size)])
			got = append(got, buf[:n]...)
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		all, back := events(t, got)
		if back != text[:min(len(text), size*1000)] {
			t.Fatalf("reads of up to %d: %d bytes came of %d", size, len(back), len(text))
		}
		for _, e := range all {
			if len(e) > len("PayloadPart: ")+maxPart {
				t.Fatalf("an event of %d bytes", len(e))
			}
		}
	}
	if n, err := NewStream(&source{pieces: []string{"x"}}, nil).Read(nil); n != 0 || err != nil {
		t.Fatalf("a read into nothing: %d, %v", n, err)
	}
}

type endless struct{ piece []byte }

func (e endless) Read(p []byte) (int, error) { return copy(p, e.piece), nil }

func (endless) Close() error { return nil }

func BenchmarkStream(b *testing.B) {
	s := NewStream(endless{bytes.Repeat([]byte("x"), 250)}, nil) // one token of a chat
	buf := make([]byte, 4096)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Read(buf); err != nil {
			b.Fatal(err)
		}
	}
}
