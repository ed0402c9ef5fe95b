package inflate

import (
	"errors"
	"strings"
)

// Known lists the codings in the form of an Accept-Encoding field.
const Known = "gzip, deflate, zstd, br"

// Why no body of a Content-Encoding is unpacked.
var (
	ErrUnknown = errors.New("inflate: the Content-Encoding is not known")
	ErrTwice   = errors.New("inflate: the body is packed more than once")
)

// Coding is one way to pack.
type Coding uint8

// The codings.
const (
	None Coding = iota // the body came as it is
	gzipped
	deflated
	zstandard
	brotlied

	codings // how many there are
)

// Parse reads a Content-Encoding field.
func Parse(field string) (c Coding, err error) {
	for name := range strings.SplitSeq(field, ",") {
		next := None
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
			return None, ErrUnknown
		}
		if c != None {
			err = ErrTwice
		}
		c = next
	}
	return c, err
}
