package zmtp

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/warmpath/warmpath/cache/parts/quota"
)

// A frame is a byte of flags, a length of 1 byte or of 8 in big-endian order, and the body. 01 02 68 69 is the frame
// "hi" of a message of which more comes, 00 00 the empty frame that ends one, and 02 00 00 00 00 00 01 00 00 begins a
// last frame of 65,536 bytes.
const (
	flagMore    = 0x01
	flagLong    = 0x02
	flagCommand = 0x04
)

const (
	maxCommand = 4096    // bytes of a command: READY with an Identity and a few properties, PING, SUBSCRIBE
	readStep   = 4 << 10 // bytes by which the memory of a message runs ahead, or as many as have come
	keepBuffer = 8 << 10 // bytes that a reader keeps for the next message, and that Config.Held does not count
	keepFrames = 64      // of a message, for the next one
	readAhead  = 4 << 10 // bytes of each buffer below, a peer
)

// ErrLimit is in the chain of every error about a peer that sent more than it may.
var ErrLimit = errors.New("over the limit")

// errFrame is in the chain of errors about bytes that are no ZMTP.
var errFrame = errors.New("not ZMTP 3")

// reader takes messages and commands off a connection, within the limits.
type reader struct {
	from    *bufio.Reader
	limits  Config
	command func(name string, body []byte) error // called for each command, also between the frames of a message
	rush    func(on bool)                        // sets the deadline of a message that is not all there, and lifts it

	share  *quota.Share
	rushed bool
	buf    []byte
	ends   []int
	frames [][]byte
}

func newReader(from io.Reader, limits Config) *reader {
	return &reader{from: bufio.NewReaderSize(from, readAhead), limits: limits, rush: func(bool) {},
		share: quota.NewShare(limits.Held, keepBuffer)}
}

// message returns the frames of the next message. They are valid until the next call.
func (r *reader) message() ([][]byte, error) {
	r.forget()
	defer r.relax()
	for more := true; more; {
		flags, n, err := r.header(len(r.ends) > 0)
		if err != nil {
			return nil, err
		}
		if flags&flagCommand != 0 {
			if err := r.runCommand(n); err != nil {
				return nil, err
			}
			if len(r.ends) == 0 {
				r.relax() // what follows may be long in coming
			}
			continue
		}
		switch {
		case n > uint64(r.limits.MaxFrame):
			return nil, fmt.Errorf("zmtp: a frame of %d bytes: %w of %d", n, ErrLimit, r.limits.MaxFrame)
		case n > uint64(r.limits.MaxMessage-len(r.buf)):
			return nil, fmt.Errorf("zmtp: a message of over %d bytes: %w", r.limits.MaxMessage, ErrLimit)
		case len(r.ends) == r.limits.MaxFrames:
			return nil, fmt.Errorf("zmtp: a message of over %d frames: %w", r.limits.MaxFrames, ErrLimit)
		}
		r.buf, err = r.body(r.buf, int(n))
		if err != nil {
			return nil, err
		}
		r.ends = append(r.ends, len(r.buf))
		more = flags&flagMore != 0
	}
	return r.split(), nil
}

// forget drops the last message.
func (r *reader) forget() {
	clear(r.frames) // they point into the buffer
	if cap(r.buf) > keepBuffer {
		r.buf = nil
	}
	if cap(r.ends) > keepFrames {
		r.ends, r.frames = nil, nil
	}
	r.buf, r.ends, r.frames = r.buf[:0], r.ends[:0], r.frames[:0]
	r.share.Drop()
}

// split cuts the buffer, which grows no more, into the frames.
func (r *reader) split() [][]byte {
	start := 0
	for _, end := range r.ends {
		r.frames = append(r.frames, r.buf[start:end:end])
		start = end
	}
	return r.frames
}

// header reads the flags and length of a frame. The first byte of a message may take any time.
func (r *reader) header(begun bool) (flags byte, n uint64, err error) {
	if begun {
		r.hurry(1)
	}
	flags, err = r.from.ReadByte()
	if err != nil {
		return 0, 0, err
	}
	size := 1
	if flags&flagLong != 0 {
		size = 8
	}
	// A command has no MORE. Bits 3 to 7 are for versions to come.
	if flags&^(flagMore|flagLong|flagCommand) != 0 || flags&flagCommand != 0 && flags&flagMore != 0 {
		return 0, 0, fmt.Errorf("zmtp: flags 0x%02x of a frame: %w", flags, errFrame)
	}
	r.hurry(size)
	var b [8]byte
	if _, err := io.ReadFull(r.from, b[8-size:]); err != nil {
		return 0, 0, unexpected(err)
	}
	return flags, binary.BigEndian.Uint64(b[:]), nil
}

// body appends n bytes to dst, as they come: memory for bytes that are only announced is readStep at most, or as much
// as has come. What all peers hold together has a bound.
func (r *reader) body(dst []byte, n int) ([]byte, error) {
	r.hurry(n)
	for n > 0 {
		step := min(n, max(readStep, len(dst)))
		if err := r.share.Grow(int64(len(dst) + step)); err != nil {
			return dst, fmt.Errorf("zmtp: a message of over %d bytes: %w", len(dst), err)
		}
		dst = slices.Grow(dst, step)
		at := len(dst)
		dst = dst[:at+step]
		if _, err := io.ReadFull(r.from, dst[at:]); err != nil {
			return dst[:at], unexpected(err)
		}
		n -= step
	}
	return dst, nil
}

// runCommand reads a command's body and runs it. It is the name with its length in a byte before it, then what is the
// command's own.
func (r *reader) runCommand(n uint64) error {
	if n > maxCommand {
		return fmt.Errorf("zmtp: a command of %d bytes: %w of %d", n, ErrLimit, maxCommand)
	}
	body := make([]byte, n)
	r.hurry(len(body))
	if _, err := io.ReadFull(r.from, body); err != nil {
		return unexpected(err)
	}
	if len(body) == 0 || int(body[0]) >= len(body) {
		return fmt.Errorf("zmtp: a command without a name: %w", errFrame)
	}
	end := 1 + int(body[0])
	if r.command == nil {
		return nil
	}
	return r.command(string(body[1:end]), body[end:])
}

// hurry sets the deadline once unless the next n bytes are there already.
func (r *reader) hurry(n int) {
	if !r.rushed && r.from.Buffered() < n {
		r.rushed = true
		r.rush(true)
	}
}

func (r *reader) relax() {
	if r.rushed {
		r.rushed = false
		r.rush(false)
	}
}

// unexpected returns err, or io.ErrUnexpectedEOF for an end in the middle of a frame.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// appendHeader appends the header of a frame with n bytes.
func appendHeader(dst []byte, flags byte, n int) []byte {
	if n > math.MaxUint8 {
		return binary.BigEndian.AppendUint64(append(dst, flags|flagLong), uint64(n))
	}
	return append(dst, flags, byte(n))
}

// appendCommand appends a whole command frame.
func appendCommand(dst []byte, name string, body []byte) []byte {
	dst = appendHeader(dst, flagCommand, 1+len(name)+len(body))
	dst = append(dst, byte(len(name)))
	dst = append(dst, name...)
	return append(dst, body...)
}
