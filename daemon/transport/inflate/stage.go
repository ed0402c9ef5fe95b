package inflate

import (
	"bufio"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"io"
	"math/bits"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
)

// maxWindow is the largest window of zstd on the web (RFC 9659).
const maxWindow = 8 << 20

// What a decoder holds. That of gzip and deflate has 40 KiB, that of zstd 1.3 MiB and its window, and that of br .3 MiB
// (by hand, live memory). Windows count in powers of two from leastWindow on, so that most bodies find a decoder of
// their size in the pool.
const (
	flateBytes  = 64 << 10
	zstdBytes   = 3 << 19
	brotliBytes = 3 << 17
	leastWindow = 1 << 20
)

// stage undoes one coding. It keeps its decoders for the next body.
type stage struct {
	feed    feed
	in      *bufio.Reader // of feed
	coding  Coding
	bounds  Bounds
	gave    int64     // bytes
	decoder io.Reader // one of those below; nil before the first Read, and between two frames of zstd
	err     error     // the end, or what went wrong; stays
	opened  bool      // a decoder has been opened for the body
	holds   int       // bytes of the decoders below

	gzip   *gzip.Reader
	zlib   io.ReadCloser
	flate  io.ReadCloser
	frame  frame
	zstd   *zstd.Decoder
	brotli *brotli.Reader
}

func newStage() *stage { return &stage{in: bufio.NewReaderSize(nil, 4<<10)} }

// begin prepares the stage for a body.
func (s *stage) begin(source io.Reader, c Coding, b Bounds) {
	s.feed = feed{source: source}
	s.in.Reset(&s.feed)
	s.coding = c
	s.bounds = b
	s.gave = 0
	s.opened = false
}

// end forgets the body.
func (s *stage) end() {
	s.feed = feed{}
	s.in.Reset(nil)
	s.decoder = nil
	s.bounds = Bounds{}
	if s.err != io.EOF {
		s.brotli = nil // its Reset keeps what it has read of a body that was left
	}
	s.err = nil
	if s.zstd != nil {
		_ = s.zstd.Reset(nil)
	}
}

// reserve asks for the memory of a decoder without its window. It drops decoders of an earlier body that hold more.
func (s *stage) reserve(own, window int) error {
	if window > 0 {
		own += 1 << bits.Len(uint(max(window, leastWindow)-1))
	}
	if s.opened { // a later frame uses what the one before it has got
		own = max(own, s.holds)
	}
	if s.bounds.Memory != nil && !s.bounds.Memory.Reserve(own) {
		return ErrNoRoom
	}
	if own < s.holds {
		s.zstd = nil
		s.brotli = nil
	}
	s.opened = true
	s.holds = own
	return nil
}

// open chooses the decoder by the coding and the first bytes. It returns io.EOF for an empty body.
func (s *stage) open() error {
	head, err := s.in.Peek(2)
	if len(head) == 0 {
		return err
	}
	if s.coding <= deflated {
		if err := s.reserve(flateBytes, 0); err != nil {
			return err
		}
	}
	switch s.coding {
	case gzipped:
		return s.openGzip()
	case zstandard:
		return s.openZstd()
	case brotlied:
		return s.openBrotli(head[0])
	}
	if len(head) == 2 && isZlib(head) {
		return s.openZlib()
	}
	return s.openFlate()
}

// isZlib reports whether a deflated body has zlib's head (RFC 1950): the method 8, and check bits that make the two
// bytes a multiple of 31.
func isZlib(head []byte) bool {
	return head[0]&0xf == 8 && (int(head[0])<<8|int(head[1]))%31 == 0
}

func (s *stage) openGzip() error {
	if s.gzip == nil {
		s.gzip = new(gzip.Reader)
	}
	s.decoder = s.gzip
	return cutShort(s.gzip.Reset(s.in))
}

func (s *stage) openZlib() (err error) {
	if s.zlib == nil {
		s.zlib, err = zlib.NewReader(s.in)
	} else {
		err = s.zlib.(zlib.Resetter).Reset(s.in, nil)
	}
	s.decoder = s.zlib
	return cutShort(err)
}

func (s *stage) openFlate() (err error) {
	if s.flate == nil {
		s.flate = flate.NewReader(s.in)
	} else {
		err = s.flate.(flate.Resetter).Reset(s.in, nil)
	}
	s.decoder = s.flate
	return err
}

// openZstd opens a frame of zstd.
func (s *stage) openZstd() error {
	window, err := s.frame.begin(s.in)
	switch {
	case err != nil:
		return cutShort(err)
	case window > maxWindow:
		return errWide
	}
	if err := s.reserve(zstdBytes, max(1, int(window))); err != nil {
		return err
	}
	if s.zstd == nil {
		s.zstd, err = zstd.NewReader(&s.frame, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxMemory(maxWindow), zstd.WithDecoderMaxWindow(maxWindow))
	} else {
		err = s.zstd.Reset(&s.frame)
	}
	s.decoder = s.zstd
	return cutShort(err)
}

// errWide is for a window that is larger than any request needs.
var errWide = errors.New("it needs a window of more than 8 MiB")

// openBrotli opens a body that begins with first. Its low bits have the window, 16 MiB at most (RFC 7932, section 9.1):
// the decoder takes memory for all of it before it has read so much.
func (s *stage) openBrotli(first byte) error {
	if first&0xf == 0xf {
		return errWide
	}
	window := 16
	if first&1 != 0 {
		window = 17 + int(first>>1&7) // or less, if these are 0
	}
	if err := s.reserve(brotliBytes, 1<<window); err != nil {
		return err
	}
	if s.brotli == nil {
		s.brotli = brotli.NewReader(s.in)
	} else {
		_ = s.brotli.Reset(s.in) // always nil
	}
	s.decoder = s.brotli
	return nil
}

// cutShort makes the end inside a decoder's head what it is: io.EOF is for the end of a whole body.
func cutShort(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// errBehind is for bytes behind the end of a deflated body.
var errBehind = errors.New("more comes behind its end")

// behind returns io.EOF if nothing follows the unpacked body. If another frame of zstd follows, it opens that. gzip has
// looked for another member already.
func (s *stage) behind() error {
	_, err := s.in.Peek(1)
	switch {
	case err != nil:
		return err
	case s.coding == zstandard:
		s.decoder = nil
		return nil
	}
	return errBehind
}
