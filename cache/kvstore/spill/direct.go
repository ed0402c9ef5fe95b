package spill

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"unsafe"
)

const bounce = 1 << 20 // of a system call

// buffers are aligned. A value in the arena is not, if its end takes a slot.
var buffers = sync.Pool{New: func() any {
	b := make([]byte, bounce+block)
	skip := -int(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) & (block - 1)
	b = b[skip : skip+bounce]
	return &b
}}

// data returns the file for values: past the page cache, if possible. Memory is the cache; the kernel's would hold each
// value a second time.
func (g *segment) data() *os.File {
	if g.raw != nil {
		return g.raw
	}
	return g.file
}

// write writes a record. The rest up to the next block is zeros.
func (g *segment) write(at int64, r *record, pieces [][]byte) error {
	buf := buffers.Get().(*[]byte)
	defer buffers.Put(buf)
	w := stream{segment: g, buf: *buf, at: at}
	err := w.add(r.encode())
	w.pad()
	for _, p := range pieces {
		if err == nil {
			err = w.add(p)
		}
	}
	w.pad()
	if err == nil {
		err = w.flush()
	}
	return err
}

// stream gathers bytes into whole blocks.
type stream struct {
	segment *segment
	buf     []byte
	n       int
	at      int64
}

func (w *stream) add(p []byte) error {
	for len(p) > 0 {
		if w.n == len(w.buf) {
			if err := w.flush(); err != nil {
				return err
			}
		}
		n := copy(w.buf[w.n:], p)
		w.n += n
		p = p[n:]
	}
	return nil
}

func (w *stream) pad() {
	end := int(roundUp(int64(w.n)))
	clear(w.buf[w.n:end])
	w.n = end
}

func (w *stream) flush() error {
	_, err := w.segment.data().WriteAt(w.buf[:w.n], w.at)
	if errors.Is(err, syscall.EINVAL) { // the blocks of this disk are larger
		_, err = w.segment.file.WriteAt(w.buf[:w.n], w.at)
	}
	w.at += int64(w.n)
	w.n = 0
	return err
}

// read reads a value that begins at a block.
func (g *segment) read(ctx context.Context, at int64, pieces [][]byte) error {
	left := int64(0)
	for _, p := range pieces {
		left += int64(len(p))
	}
	buf := buffers.Get().(*[]byte)
	defer buffers.Put(buf)
	var got []byte
	for _, p := range pieces {
		for len(p) > 0 {
			if len(got) == 0 {
				if err := ctx.Err(); err != nil {
					return err
				}
				got = (*buf)[:min(roundUp(left), bounce)]
				if err := g.readAt(got, at); err != nil {
					return fmt.Errorf("%w: %w", errCorrupt, err)
				}
				at += int64(len(got))
			}
			n := copy(p, got)
			p = p[n:]
			got = got[n:]
			left -= int64(n)
		}
	}
	return nil
}

func (g *segment) readAt(p []byte, at int64) error {
	_, err := g.data().ReadAt(p, at)
	if errors.Is(err, syscall.EINVAL) {
		_, err = g.file.ReadAt(p, at)
	}
	return err
}
