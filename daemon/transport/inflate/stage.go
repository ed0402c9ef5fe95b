package inflate

import (
	"bufio"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"io"
	"sync"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
)

// maxWindow is the largest window of zstd on the web (RFC 9659).
const maxWindow = 8 << 20

// stage undoes one coding. It keeps its decoders for the next body.
type stage struct {
	feed    feed
	in      *bufio.Reader // of feed
	coding  coding
	left    int64     // bytes until the bound
	decoder io.Reader // one of those below; nil before the first Read
	err     error     // the end, or what went wrong; stays

	gzip   *gzip.Reader
	zlib   io.ReadCloser
	flate  io.ReadCloser
	zstd   *zstd.Decoder
	brotli *brotli.Reader
}

var stages = sync.Pool{New: func() any { return &stage{in: bufio.NewReaderSize(nil, 4<<10)} }}

// begin prepares the stage for a body.
func (s *stage) begin(source io.Reader, c coding, most int64) {
	s.feed = feed{source: source}
	s.in.Reset(&s.feed)
	s.coding = c
	s.left = most
}

// end forgets the body.
func (s *stage) end() {
	s.feed = feed{}
	s.in.Reset(nil)
	s.decoder = nil
	if s.err != io.EOF {
		s.brotli = nil // its Reset keeps what it has read of a body that was left
	}
	s.err = nil
	if s.zstd != nil {
		_ = s.zstd.Reset(nil)
	}
}

// open chooses the decoder by the coding and the first bytes. It returns io.EOF for an empty body.
func (s *stage) open() error {
	head, err := s.in.Peek(2)
	if len(head) == 0 {
		return err
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

func (s *stage) openZstd() (err error) {
	if s.zstd == nil {
		s.zstd, err = zstd.NewReader(s.in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxMemory(maxWindow), zstd.WithDecoderMaxWindow(maxWindow))
	} else {
		err = s.zstd.Reset(s.in)
	}
	s.decoder = s.zstd
	return cutShort(err)
}

// errWide is for a window that nobody needs for a request.
var errWide = errors.New("it needs a window of more than 8 MiB")

// openBrotli opens a body that begins with first. Its low bits have the window, 16 MiB at most (RFC 7932, section 9.1):
// the decoder takes memory for all of it before it has read so much.
func (s *stage) openBrotli(first byte) error {
	if first&0xf == 0xf {
		return errWide
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

// behind returns io.EOF if nothing comes behind what was unpacked. gzip and zstd have looked already.
func (s *stage) behind() error {
	_, err := s.in.ReadByte()
	if err == nil {
		return errBehind
	}
	return err
}
