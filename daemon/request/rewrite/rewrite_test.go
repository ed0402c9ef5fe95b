package rewrite

import (
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// numbering writes a number before each brace that opens, from 1 in each text.
type numbering struct{ n byte }

func (e *numbering) Append(out, p []byte) []byte {
	for _, c := range p {
		if c == '{' {
			e.n++
			out = append(out, '0'+e.n)
		}
		out = append(out, c)
	}
	return out
}

func (e *numbering) Reset() { e.n = 0 }

// TestReader: an editor sees the data of events and nothing else, a text ends with an empty line, and it does not matter
// how an answer is cut.
func TestReader(t *testing.T) {
	f := func(events bool, text, want string) {
		t.Helper()
		for _, from := range []io.Reader{strings.NewReader(text), iotest.OneByteReader(strings.NewReader(text)),
			iotest.DataErrReader(strings.NewReader(text))} {
			if got, err := io.ReadAll(NewReader(from, &numbering{}, events)); err != nil || string(got) != want {
				t.Errorf("%q: %q, %v; want %q", text, got, err, want)
			}
		}
	}
	f(false, "data: {{\n\n{", "data: 1{2{\n\n3{")
	f(true, "event: {\ndata:{\ndata: {\n\ndata: {\n\n: {\n\n", "event: {\ndata:1{\ndata: 2{\n\ndata: 1{\n\n: {\n\n")
	f(true, "data: {\r\n\r\ndata: {\r\rdat: {\r\rdata: {", "data: 1{\r\n\r\ndata: 1{\r\rdat: {\r\rdata: 1{")
	f(true, "", "")
}

// TestReaderEnds: an error comes behind all that was read before it.
func TestReaderEnds(t *testing.T) {
	r := NewReader(io.MultiReader(strings.NewReader("{{{"), iotest.ErrReader(io.ErrUnexpectedEOF)), &numbering{}, false)
	if got, err := io.ReadAll(r); string(got) != "1{2{3{" || err != io.ErrUnexpectedEOF {
		t.Errorf("%q, %v", got, err)
	}
	if n, err := r.Read(nil); n != 0 || err != io.ErrUnexpectedEOF {
		t.Errorf("%d, %v", n, err)
	}
}
