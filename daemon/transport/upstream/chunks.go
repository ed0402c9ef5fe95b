package upstream

import "fmt"

// maxAside bounds what a chunk's extensions, or all trailers together, may take. They are dropped.
const maxAside = 8 << 10

// chunks takes the chunk framing off a body as it comes, in whatever pieces. The zero value is ready.
type chunks struct {
	left  int64 // of the chunk's data
	aside int   // bytes of this chunk's size line, or of the trailers
	at    chunkState
}

// chunkState is where in the framing the next byte stands (RFC 9112, section 7.1).
type chunkState uint8

const (
	atSize  chunkState = iota // the first digit of a size
	inSize                    // the digits after it
	inBlank                   // behind the digits; only blanks, an extension or the end of the line may follow
	inExtension
	atSizeLF
	inData
	atDataCR
	atDataLF
	atTrailer // the start of a trailer line, or the CR of the last line
	inTrailer
	atTrailerLF
	atLastLF
	atEnd
)

// decode moves data from src to dst until either is used up or the body ends. It returns how much of both it used.
// dst may begin where src begins: what is written never overtakes what is read.
func (c *chunks) decode(dst, src []byte) (nd, ns int, err error) {
	for ns < len(src) && c.at != atEnd {
		if c.at == inData {
			n := int(min(c.left, int64(len(src)-ns), int64(len(dst)-nd)))
			if n == 0 {
				return nd, ns, nil // dst is full
			}
			copy(dst[nd:nd+n], src[ns:ns+n])
			nd += n
			ns += n
			c.left -= int64(n)
			if c.left == 0 {
				c.at = atDataCR
			}
			continue
		}
		if n := c.quick(src[ns:]); n > 0 {
			ns += n
			continue
		}
		if !c.step(src[ns]) {
			return nd, ns, fmt.Errorf("%w: its chunk framing", errAnswer)
		}
		ns++
	}
	return nd, ns, nil
}

// quick takes the usual framing in one go, if all of it is there: the end of a chunk and a size without anything behind
// it. It returns how much that was; 0 = step has to look at it.
func (c *chunks) quick(b []byte) int {
	i := 0
	if c.at == atDataCR && len(b) > 2 && b[0] == '\r' && b[1] == '\n' {
		i = 2
	} else if c.at != atSize {
		return 0
	}
	size := int64(0)
	first := i
	for i < len(b) && i-first < 8 && hex[b[i]] < 16 {
		size = size<<4 | int64(hex[b[i]])
		i++
	}
	if size == 0 || i+1 >= len(b) || b[i] != '\r' || b[i+1] != '\n' {
		return 0
	}
	c.left = size
	c.at = inData
	return i + 2
}

// hex is the value of a hexadecimal digit, or 255 for every other byte.
var hex = func() (t [256]uint8) {
	for i := range t {
		t[i] = 255
	}
	for _, digits := range []string{"0123456789abcdef", "0123456789ABCDEF"} {
		for v := range len(digits) {
			t[digits[v]] = uint8(v)
		}
	}
	return t
}()

// step takes one byte of framing.
func (c *chunks) step(b byte) (ok bool) {
	switch c.at {
	case atSize, inSize:
		return c.size(b)
	case inBlank, inExtension:
		if b == ';' {
			c.at = inExtension
		} else if c.at == inBlank && b != ' ' && b != '\t' && b != '\r' {
			return false
		}
		if b == '\r' {
			c.at = atSizeLF
			return true
		}
		return c.dropped(b)
	case atSizeLF:
		c.at = inData
		c.aside = 0
		if c.left == 0 {
			c.at = atTrailer
		}
		return b == '\n'
	case atDataCR:
		c.at = atDataLF
		return b == '\r'
	case atDataLF:
		c.at = atSize
		return b == '\n'
	case atTrailer:
		c.at = inTrailer
		if b == '\r' {
			c.at = atLastLF
			return true
		}
		return c.dropped(b)
	case inTrailer:
		if b == '\r' {
			c.at = atTrailerLF
			return true
		}
		return c.dropped(b)
	case atTrailerLF:
		c.at = atTrailer
		return b == '\n'
	case atLastLF:
		c.at = atEnd
		return b == '\n'
	}
	return false
}

// size takes a byte of a chunk's size: at most 15 digits, so that it cannot overflow.
func (c *chunks) size(b byte) (ok bool) {
	digit := hex[b]
	switch {
	case digit < 16:
	case c.at == atSize:
		return false
	case b == '\r':
		c.at = atSizeLF
		return true
	case b == ';':
		c.at = inExtension
		c.aside = 0
		return true
	case b == ' ' || b == '\t':
		c.at = inBlank
		c.aside = 0
		return true
	default:
		return false
	}
	if c.at == atSize {
		c.at = inSize
		c.left = 0
		c.aside = 0
	}
	c.left = c.left<<4 | int64(digit)
	c.aside++
	return c.aside <= 15
}

// dropped counts a byte that no reader gets. It returns false when there are too many.
func (c *chunks) dropped(b byte) (ok bool) {
	c.aside++
	return c.aside <= maxAside && inValue[b]
}
