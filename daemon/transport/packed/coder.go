package packed

import (
	"encoding/binary"
	"math"
	"slices"
	"unsafe"
)

// Coder writes values, or reads them in the same order. One that reads bytes of another list of fields sets Bad, and
// reads zeros from there on.
type Coder struct {
	Out []byte // what is written
	Bad bool

	in      string
	reading bool
}

// Read returns a coder that reads. The texts that it reads are parts of text.
func Read(text string) Coder { return Coder{in: text, reading: true} }

// Reading reports whether the coder reads.
func (c *Coder) Reading() bool { return c.reading }

// take returns the next n bytes that are read, "" if there are not so many.
func (c *Coder) take(n uint64) string {
	if n > uint64(len(c.in)) {
		c.Bad, c.in = true, ""
		return ""
	}
	v := c.in[:n]
	c.in = c.in[n:]
	return v
}

// Uint is a number that is small mostly.
func (c *Coder) Uint(v *uint64) {
	if !c.reading {
		if *v < 0x80 {
			c.Out = append(c.Out, byte(*v))
		} else {
			c.Out = binary.AppendUvarint(c.Out, *v)
		}
		return
	}
	*v = 0
	for shift := 0; ; shift += 7 {
		b := c.take(1)
		if b == "" || shift > 63 {
			c.Bad, *v = true, 0
			return
		}
		*v |= uint64(b[0]&0x7f) << shift
		if b[0] < 0x80 {
			return
		}
	}
}

// Int is a number of any type. One that is small, of either sign, takes few bytes.
func Int[T ~int | ~int32 | ~int64 | ~uint32 | ~uint64](c *Coder, v *T) {
	n := uint64(int64(*v)<<1) ^ uint64(int64(*v)>>63)
	c.Uint(&n)
	if c.reading {
		*v = T(int64(n>>1) ^ -int64(n&1))
	}
}

// Len is the length of a list. One that is read is at most as long as the bytes that are left, so that nobody makes
// room for more.
func (c *Coder) Len(n int) int {
	Int(c, &n)
	if c.reading && (n < 0 || n > len(c.in)) {
		c.Bad = true
		return 0
	}
	return n
}

// Text is a text.
func (c *Coder) Text(v *string) {
	if c.reading {
		n := uint64(0)
		c.Uint(&n)
		*v = c.take(n)
		return
	}
	c.Out = append(binary.AppendUvarint(c.Out, uint64(len(*v))), *v...)
}

// Texts are texts, one behind the other.
func (c *Coder) Texts(list ...*string) {
	if c.reading {
		for _, v := range list {
			c.Text(v)
		}
		return
	}
	out := c.Out
	for _, v := range list {
		if n := len(*v); n < 0x80 {
			out = append(out, byte(n))
		} else {
			out = binary.AppendUvarint(out, uint64(n))
		}
		out = append(out, *v...)
	}
	c.Out = out
}

// Float is a number of eight bytes, 0 of one.
func (c *Coder) Float(v *float64) {
	bits := [1]uint64{math.Float64bits(*v)}
	c.Words(bits[:], nil)
	*v = math.Float64frombits(bits[0])
}

// Bools are up to eight flags.
func (c *Coder) Bools(flags ...*bool) {
	if c.reading {
		b := c.take(1)
		for i, f := range flags {
			*f = b != "" && b[0]>>i&1 == 1
		}
		return
	}
	all := byte(0)
	for i, f := range flags {
		if *f {
			all |= 1 << i
		}
	}
	c.Out = append(c.Out, all)
}

// wordsAtOnce is how many words one mask names.
const wordsAtOnce = 32

// Words are eight bytes each, in this machine's order. Those that are 0, or the same as the word of that place in like,
// take a bit. like is as long as v, or nil.
func (c *Coder) Words(v, like []uint64) {
	for len(v) > 0 {
		n := min(len(v), wordsAtOnce)
		part := like
		if like != nil {
			part, like = like[:n], like[n:]
		}
		if c.reading {
			c.readWords(v[:n], part)
		} else {
			c.Out = appendWords(c.Out, v[:n], part)
		}
		v = v[n:]
	}
}

var zeros [wordsAtOnce]uint64

// appendWords appends a mask of the words that stand behind it, in as many bytes as it has bits for, and these.
func appendWords(out []byte, v, like []uint64) []byte {
	at := len(out)
	head := (len(v) + 7) / 8
	out = slices.Grow(out, head+8*len(v))[:at+head+8*len(v)]
	to, next, mask := unsafe.Pointer(unsafe.SliceData(out)), at+head, uint32(0)
	if like == nil {
		like = zeros[:]
	}
	like = like[:len(v)]
	for i, w := range v {
		w ^= like[i]
		*(*uint64)(unsafe.Add(to, next)) = w // there is room for all
		some := 0                            // without a jump that nobody can foresee
		if w != 0 {
			some = 1
		}
		mask |= uint32(some) << i
		next += 8 * some
	}
	for i := range head {
		out[at+i] = byte(mask >> (8 * i))
	}
	return out[:next]
}

func (c *Coder) readWords(v, like []uint64) {
	head := c.take(uint64(len(v)+7) / 8)
	for i := range v {
		w := uint64(0)
		if i/8 < len(head) && head[i/8]>>(i%8)&1 == 1 {
			if text := c.take(8); text != "" {
				w = binary.NativeEndian.Uint64([]byte(text))
			}
		}
		if i < len(like) {
			w ^= like[i]
		}
		v[i] = w
	}
}
