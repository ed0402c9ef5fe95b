package inflate

import (
	"errors"
	"fmt"
	"io"
)

// Why a body cannot be unpacked.
var (
	ErrCorrupt = errors.New("inflate: the body is not what its Content-Encoding says")
	ErrTooLong = errors.New("inflate: the body is over its bound when it is unpacked")
)

// Reader unpacks a body. It is not safe for concurrent use.
type Reader struct {
	stages []*stage // the last one gives the body
}

// NewReader unpacks what comes from source. No stage of it gives more than most bytes.
func NewReader(source io.Reader, c Codings, most int64) *Reader {
	r := &Reader{stages: make([]*stage, 0, c.n)}
	for i := c.n - 1; i >= 0; i-- { // what was done last is undone first
		s := stages.Get().(*stage)
		s.begin(source, c.of[i], most)
		r.stages = append(r.stages, s)
		source = s
	}
	return r
}

// Read implements io.Reader.
func (r *Reader) Read(p []byte) (int, error) { return r.stages[len(r.stages)-1].Read(p) }

// Close gives the decoders' memory back. Nothing may be read after it.
func (r *Reader) Close() {
	for _, s := range r.stages {
		s.end()
		stages.Put(s)
	}
	r.stages = nil
}

// feed is what a decoder reads. It keeps the source's own error, which decoders put into words of theirs.
type feed struct {
	source io.Reader
	err    error // of source, but for io.EOF
}

func (f *feed) Read(p []byte) (int, error) {
	n, err := f.source.Read(p)
	if err != nil && err != io.EOF {
		f.err = err
	}
	return n, err
}

// Read unpacks the next bytes, within the bound.
func (s *stage) Read(p []byte) (int, error) {
	if s.err != nil || len(p) == 0 {
		return 0, s.err
	}
	if s.decoder == nil {
		s.err = s.fault(s.open())
		if s.err != nil {
			return 0, s.err
		}
	}
	n, err := s.decoder.Read(p[:min(int64(len(p)), s.left+1)])
	s.left -= int64(n)
	switch {
	case s.left < 0:
		n, s.err = 0, ErrTooLong
	case err == io.EOF:
		s.err = s.fault(s.behind())
	default:
		s.err = s.fault(err)
	}
	return n, s.err
}

// fault returns the error that a stage gives for one of its decoder.
func (s *stage) fault(err error) error {
	switch {
	case err == nil || err == io.EOF:
		return err
	case s.feed.err != nil:
		return s.feed.err
	}
	return fmt.Errorf("%w: %w", ErrCorrupt, err)
}
