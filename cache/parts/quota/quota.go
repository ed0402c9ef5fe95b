// Package quota bounds the bytes that all connections of a listener hold together. A bound for each connection alone is
// not enough: a thousand of them may come.
package quota

import (
	"errors"
	"io"
	"sync/atomic"
	"time"
)

// ErrFull means that the connections hold as much as they may, and that none of them has given enough back in time.
var ErrFull = errors.New("all connections together hold too many bytes; try again")

// Bytes is a bound that connections share. It is safe for concurrent use. A nil Bytes has no bound.
type Bytes struct {
	most int64
	held atomic.Int64
}

// New makes a bound of so many bytes.
func New(most int64) *Bytes { return &Bytes{most: most} }

// Take counts n bytes. It counts nothing and returns false if that would be too many.
func (b *Bytes) Take(n int64) bool {
	if b == nil {
		return true
	}
	for {
		held := b.held.Load()
		if held+n > b.most {
			return false
		}
		if b.held.CompareAndSwap(held, held+n) {
			return true
		}
	}
}

// Give counts n bytes down.
func (b *Bytes) Give(n int64) {
	if b != nil {
		b.held.Add(-n)
	}
}

// Held returns the bytes counted now.
func (b *Bytes) Held() int64 { return b.held.Load() }

// Share is the part of one connection. One goroutine may call Grow, and any Drop.
type Share struct {
	of   *Bytes
	free int64 // bytes that are not counted: what each connection may hold
	held atomic.Int64
}

// NewShare makes the share of a connection that may hold so many bytes in addition to those that are counted.
func NewShare(of *Bytes, free int64) *Share { return &Share{of: of, free: free} }

const (
	patience = 2 * time.Second // of a share for others to give bytes back
	retry    = 5 * time.Millisecond
)

// Grow counts the bytes that the connection holds, if they are more than before. If all have too many, it waits for
// others, 2 s at most; then it returns ErrFull.
func (s *Share) Grow(total int64) error {
	more := total - s.free - s.held.Load()
	if more <= 0 {
		return nil
	}
	for end := time.Now().Add(patience); !s.of.Take(more); {
		if time.Now().After(end) {
			return ErrFull
		}
		time.Sleep(retry)
	}
	s.held.Add(more)
	return nil
}

// Drop gives all back.
func (s *Share) Drop() {
	s.of.Give(s.held.Swap(0))
}

// firstPiece is the memory that an answer gets before any of it has come.
const firstPiece = 4 << 10

// ReadAll reads to the end, or as many bytes as most, and counts the memory that it takes: the length that an answer
// states does not bound what arrives.
func (s *Share) ReadAll(from io.Reader, most int64) ([]byte, error) {
	var text []byte
	for int64(len(text)) < most {
		if len(text) == cap(text) {
			size := min(max(firstPiece, 2*int64(len(text))), most)
			if err := s.Grow(size); err != nil {
				return text, err
			}
			text = append(make([]byte, 0, size), text...)
		}
		n, err := from.Read(text[len(text):min(int64(cap(text)), most)])
		text = text[:len(text)+n]
		switch {
		case err == io.EOF:
			return text, nil
		case err != nil:
			return text, err
		}
	}
	return text, nil
}
