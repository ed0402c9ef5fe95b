package cli

import (
	"io"
	"unicode/utf8"
)

// printable is a writer that removes control sequences from a command's output. Names of models, keys and workers,
// and messages of workers and modules, come from other people: an escape sequence in them could rename the operator's
// window or hide a line. It is not safe for concurrent use.
type printable struct {
	to   io.Writer
	rest []byte // the beginning of a character whose other bytes have not been written yet
}

// Write implements io.Writer.
func (p *printable) Write(b []byte) (int, error) {
	text := append(p.rest, b...)
	end := len(text)
	for back := 1; back <= min(utf8.UTFMax-1, len(text)); back++ {
		if i := len(text) - back; utf8.RuneStart(text[i]) {
			if !utf8.FullRune(text[i:]) {
				end = i
			}
			break
		}
	}
	p.rest = append([]byte(nil), text[end:]...)
	if _, err := p.to.Write(harmless(nil, text[:end])); err != nil {
		return 0, err
	}
	return len(b), nil
}

// bare returns the writer below a printable, for a command that writes control sequences itself.
func bare(out io.Writer) io.Writer {
	if p, ok := out.(*printable); ok {
		return p.to
	}
	return out
}

// harmless appends a text to out. It replaces each control character and each byte of invalid UTF-8 by U+FFFD.
func harmless(out, text []byte) []byte {
	for len(text) > 0 {
		r, n := utf8.DecodeRune(text)
		if obeyed(r) {
			r = utf8.RuneError
		}
		out = utf8.AppendRune(out, r)
		text = text[n:]
	}
	return out
}

// obeyed reports whether a terminal may act on a character: ASCII controls except line feed and tab, Latin-1
// controls, and the marks that change the direction of text.
func obeyed(r rune) bool {
	switch {
	case r == '\n' || r == '\t':
		return false
	case r < ' ', r >= 0x7f && r < 0xa0:
		return true
	case r == 0x61c, r == 0x200e, r == 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069:
		return true
	}
	return false
}
