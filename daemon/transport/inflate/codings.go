package inflate

import "strings"

// Known lists the codings in the form of an Accept-Encoding field.
const Known = "gzip, deflate, zstd, br"

// maxCodings bounds how often a body may be packed. Nobody is known to send two.
const maxCodings = 3

// coding is one way to pack.
type coding uint8

const (
	gzipped coding = iota
	deflated
	zstandard
	brotlied
)

// Codings is what was done to a body, in that order. The zero value is nothing.
type Codings struct {
	of [maxCodings]coding
	n  int
}

// None reports whether the body came as it is.
func (c Codings) None() bool { return c.n == 0 }

// Parse reads a Content-Encoding field. ok is false if a coding of it is not known, or if there are too many.
func Parse(field string) (c Codings, ok bool) {
	for name := range strings.SplitSeq(field, ",") {
		var next coding
		switch strings.ToLower(strings.Trim(name, " \t")) {
		case "", "identity":
			continue
		case "gzip", "x-gzip":
			next = gzipped
		case "deflate":
			next = deflated
		case "zstd":
			next = zstandard
		case "br":
			next = brotlied
		default:
			return Codings{}, false
		}
		if c.n == maxCodings {
			return Codings{}, false
		}
		c.of[c.n] = next
		c.n++
	}
	return c, true
}
