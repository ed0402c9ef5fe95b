package overflow

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"sync"
	"syscall"

	"github.com/warmpath/warmpath/daemon/request/account"
)

// ErrFull is returned for bytes that would exceed Limits, or a client's part of it.
var ErrFull = errors.New("overflow: the bodies that are kept take all of the room that there is for a client")

// Failure is an error of the file that keeps a body.
type Failure struct{ Err error }

// Error implements error.
func (f *Failure) Error() string { return fmt.Sprintf("overflow: %v", f.Err) }

// Unwrap returns the error of the system.
func (f *Failure) Unwrap() error { return f.Err }

// Limits is where bodies are kept, and how much.
type Limits struct {
	Dir  string // "" = the system's folder for temporary files
	Most int64  // bytes of all bodies together, as account.Shared divides them; 0 = none is kept
}

// Longest returns the size of the longest body that is kept, while there is no other.
func (l Limits) Longest() int64 { return l.Most / 2 }

// Store counts what its bodies take. The zero value is empty. It is safe for concurrent use.
type Store struct{ account.Shared }

// Body is one that is kept. But for Close it is not safe for concurrent use.
type Body struct {
	part account.Part
	most int64
	file *os.File
	size int64
	mem  []byte // maps the file's beginning; nil before Bytes
	once sync.Once
}

// Keep begins a client's body with its first bytes.
func (s *Store) Keep(l Limits, client string, head []byte) (*Body, error) {
	if int64(len(head)) > l.Longest() {
		return nil, ErrFull
	}
	f, err := os.CreateTemp(l.Dir, "warmpath-body-")
	if err != nil {
		return nil, &Failure{err}
	}
	b := &Body{part: s.Part(client), most: l.Most, file: f}
	if err := os.Remove(f.Name()); err != nil {
		b.Close()
		return nil, &Failure{err}
	}
	if err := b.add(head); err != nil {
		b.Close()
		return nil, err
	}
	return b, nil
}

// Size returns how many bytes are kept.
func (b *Body) Size() int64 { return b.size }

// add appends a piece.
func (b *Body) add(piece []byte) error {
	if !b.part.Grow(b.size+int64(len(piece)), b.most) {
		return ErrFull
	}
	b.size += int64(len(piece))
	if _, err := b.file.Write(piece); err != nil {
		return &Failure{err}
	}
	return nil
}

// pieces holds the memory by which bodies are copied.
var pieces = sync.Pool{New: func() any { return new([64 << 10]byte) }}

// Read appends what comes from a reader until the body has that size, or the reader ends. That is io.EOF, as is said by
// ended. An error of the reader is returned as it is. ctx is looked at before each piece.
func (b *Body) Read(ctx context.Context, from io.Reader, size int64) (ended bool, err error) {
	piece := pieces.Get().(*[64 << 10]byte)
	defer pieces.Put(piece)
	for b.size < size {
		if ctx.Err() != nil {
			return false, context.Cause(ctx)
		}
		n, err := from.Read(piece[:min(int64(len(piece)), size-b.size)])
		if failed := b.add(piece[:n]); failed != nil {
			return false, failed
		}
		if err == io.EOF {
			return true, nil
		}
		if err != nil {
			return false, err
		}
	}
	return false, nil
}

// Bytes returns all that is kept. It takes back what it returned before. From here on a fault in reading memory is a
// panic of this goroutine.
func (b *Body) Bytes() ([]byte, error) {
	b.unmap()
	if b.size == 0 {
		return nil, nil
	}
	mem, err := syscall.Mmap(int(b.file.Fd()), 0, int(b.size), syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		return nil, &Failure{os.NewSyscallError("mmap", err)}
	}
	b.mem = mem
	debug.SetPanicOnFault(true)
	return mem, nil
}

// Seal closes the file. Nothing can be added afterwards. What Bytes returned holds until Close.
func (b *Body) Seal() {
	if b.file != nil {
		_ = b.file.Close()
		b.file = nil
	}
}

func (b *Body) unmap() {
	if b.mem != nil {
		_ = syscall.Munmap(b.mem)
		b.mem = nil
	}
}

// Close frees the body. It may be called more than once.
func (b *Body) Close() {
	b.once.Do(func() {
		b.unmap()
		b.Seal()
		b.part.Release()
	})
}
