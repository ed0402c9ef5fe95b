package inflate

import (
	"errors"
	"fmt"
	"io"
	"sync"
)

// Why a body cannot be unpacked.
var (
	ErrCorrupt = errors.New("inflate: the body is not what its Content-Encoding says")
	ErrTooLong = errors.New("inflate: the body is over its bound when it is unpacked")
	ErrGrows   = errors.New("inflate: the body is more than 100 times as long when it is unpacked")
	ErrNoRoom  = errors.New("inflate: there is no memory for the decoder")
)

// What a body may unpack to: freeBytes, and more as long as that is no more than maxGrowth times what has come of it.
// JSON of prompts becomes 3 to 30 times as long. One letter becomes 1,032 times as long by gzip, and a million times by
// zstd and br.
const (
	freeBytes = 1 << 20
	maxGrowth = 100
)

// Bounds are what a body may cost.
type Bounds struct {
	Most   int64 // bytes that it may have
	Memory Memory
}

// Memory is what decoders share.
type Memory interface {
	// Reserve is called before a decoder gets its memory, with all that the body's have then. It may wait. If it returns
	// false, the body fails with ErrNoRoom.
	Reserve(bytes int) bool
}

// Reader unpacks a body. It is not safe for concurrent use.
type Reader struct{ *stage }

// stages are kept apart by coding: one holds the memory of its decoder.
var stages [codings]sync.Pool

// NewReader unpacks what comes from source, packed in a coding other than None.
func NewReader(source io.Reader, c Coding, b Bounds) *Reader {
	s, ok := stages[c].Get().(*stage)
	if !ok {
		s = newStage()
	}
	s.begin(source, c, b)
	return &Reader{s}
}

// Close gives the decoder's memory back. Nothing may be read after it.
func (r *Reader) Close() {
	s := r.stage
	r.stage = nil
	s.end()
	stages[s.coding].Put(s)
}

// feed is what a decoder reads. It keeps the source's own error, which decoders put into words of theirs.
type feed struct {
	source io.Reader
	come   int64 // bytes
	err    error // of source, but for io.EOF
}

func (f *feed) Read(p []byte) (int, error) {
	n, err := f.source.Read(p)
	f.come += int64(n)
	if err != nil && err != io.EOF {
		f.err = err
	}
	return n, err
}

// Read unpacks the next bytes, within the bounds.
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
	n, err := s.decoder.Read(p[:min(int64(len(p)), s.bounds.Most-s.gave+1)])
	s.gave += int64(n)
	switch {
	case s.gave > s.bounds.Most:
		n, s.err = 0, ErrTooLong
	case s.gave > freeBytes && s.gave > maxGrowth*s.feed.come:
		n, s.err = 0, ErrGrows
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
	case err == nil || err == io.EOF || err == ErrNoRoom:
		return err
	case s.feed.err != nil:
		return s.feed.err
	}
	return fmt.Errorf("%w: %w", ErrCorrupt, err)
}
