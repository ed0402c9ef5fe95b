package front

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/daemon/request/message"
	"github.com/warmpath/warmpath/daemon/transport/inflate"
	"github.com/warmpath/warmpath/daemon/transport/upstream"
)

func gzipped(text string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = io.WriteString(w, text)
	_ = w.Close()
	return b.String()
}

func TestPacking(t *testing.T) {
	f := func(fault message.Fault, want inflate.Coding, fields ...string) {
		t.Helper()
		in := &message.Inbound{}
		var header []upstream.Field
		for _, f := range fields {
			header = append(header, upstream.Field{Name: "content-encoding", Value: f})
		}
		in.SetHeader(header)
		if c, got := packing(in); got != fault || fault.Status == 0 && c != want {
			t.Errorf("%q: %v, %v; want %v, %v", fields, c, got.Code, want, fault.Code)
		}
	}
	zstd, _ := inflate.Parse("zstd")
	f(message.Fault{}, inflate.None)
	f(message.Fault{}, inflate.None, "identity")
	f(message.Fault{}, zstd, "zstd")
	f(message.Fault{}, zstd, "zstd", "identity")
	f(message.FaultGrows, 0, "gzip", "zstd")
	f(message.FaultPacking, 0, "bz2")
	f(message.FaultPacking, 0, "gzip", "bz2")
}

// TestBodyUnpacks: what stands of a packed body in memory, what is left to its Tail, and how it ends.
func TestBodyUnpacks(t *testing.T) {
	const most, buffer = 1 << 20, 1000
	bound := most
	f := func(body string, length int64, want string, fault message.Fault, tail error) {
		t.Helper()
		c, _ := inflate.Parse("gzip")
		b := &bodyReader{r: strings.NewReader(body), left: length, room: most, buffer: newBuffer(-1, holding{})}
		in := &message.Inbound{}
		in.SetHeader([]upstream.Field{{Name: "A", Value: "a"}, {Name: "content-ENCODING", Value: "gzip"}, {Name: "B", Value: "b"}})
		if got := b.unpack(in, b, c, &Epoch{MaxBody: bound, BufferBody: buffer}); got != fault {
			t.Fatalf("%d bytes: %v; want %v", len(body), got, fault)
		}
		if fault.Status != 0 {
			b.free(in)
			return
		}
		if len(in.Header) != 2 || in.Get("Content-Encoding") != "" {
			t.Errorf("the worker's header: %v", in.Header)
		}
		got := string(in.Body)
		if in.Tail != nil {
			if len(got) != buffer || in.Left != -1 || in.Tail.Passed() {
				t.Errorf("%d bytes are held, %d left, passed %v", len(got), in.Left, in.Tail.Passed())
			}
			rest, err := io.ReadAll(in.Tail)
			got += string(rest)
			if !errors.Is(err, tail) || !in.Tail.Passed() {
				t.Errorf("the rest ends with %v; want %v", err, tail)
			}
			if tail != nil {
				got = want
			}
		}
		if got != want || tail == nil && !b.done() {
			t.Errorf("%d bytes come of %d; want %d; done %v", len(got), len(body), len(want), b.done())
		}
		last := in.Tail
		b.free(in)
		if last != nil {
			if n, err := last.Read(make([]byte, 1)); n != 0 || err == nil {
				t.Errorf("a Tail whose memory is another's: %d, %v", n, err)
			}
		}
	}
	none := message.Fault{}
	small, long := `{"model":"m"}`, strings.Repeat("0123456789", 5000)
	packed := gzipped(long)
	f(gzipped(small), int64(len(gzipped(small))), small, none, nil)
	f(gzipped(small), -1, small, none, nil)
	f("", -1, "", none, nil)
	f(packed, int64(len(packed)), long, none, nil)
	f(packed, -1, long, none, nil)
	f(packed[:len(packed)-1], int64(len(packed)-1), long, none, message.ErrPacked)
	f(packed+"x", -1, long, none, message.ErrPacked)
	f(packed[:len(packed)-9], int64(len(packed)), long, none, io.ErrUnexpectedEOF) // the client left
	f(gzipped(strings.Repeat("x", most+1)), -1, "", none, message.ErrTooLarge)
	bound = 2 * most
	f(gzipped(strings.Repeat("x", most+1)), -1, "", none, message.ErrGrows)
	f(small, int64(len(small)), "", message.FaultPacked, nil)
	f(gzipped(small)[:20], 20, "", message.FaultPacked, nil)
	f(gzipped(small)[:20], 30, "", message.FaultFraming, nil)
}
