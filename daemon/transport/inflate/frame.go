package inflate

import (
	"bufio"
	"io"

	"github.com/klauspost/compress/zstd"
)

// frame reads one frame of zstd, and no byte behind it (RFC 8878, section 3.1.1). Each frame names a window of its own,
// for which a decoder that reads on takes memory unasked.
type frame struct {
	in   *bufio.Reader
	left int  // bytes until the next block's header, or the end
	last bool // no block comes any more
	sum  int  // bytes behind the last block
}

// begin looks at the frame's header and returns its window.
func (f *frame) begin(in *bufio.Reader) (window uint64, err error) {
	head, err := in.Peek(zstd.HeaderMaxSize)
	if err != nil && err != io.EOF {
		return 0, err
	}
	var h zstd.Header
	if err := h.Decode(head); err != nil {
		return 0, err
	}
	*f = frame{in: in, left: h.HeaderSize}
	if h.Skippable {
		f.left += int(h.SkippableSize)
		f.last = true
	}
	if h.HasCheckSum {
		f.sum = 4
	}
	if h.SingleSegment {
		return h.FrameContentSize, nil
	}
	return h.WindowSize, nil
}

// Read implements io.Reader. A block's header has 3 bytes: whether it is the last one, its type, and its size, which
// of a block of type 1 is that of one byte repeated.
func (f *frame) Read(p []byte) (int, error) {
	if f.left == 0 && !f.last {
		head, err := f.in.Peek(3)
		if err != nil {
			return 0, cutShort(err)
		}
		f.last = head[0]&1 != 0
		f.left = 3 + 1
		if head[0]>>1&3 != 1 {
			f.left = 3 + (int(head[0])|int(head[1])<<8|int(head[2])<<16)>>3
		}
		if f.last {
			f.left += f.sum
		}
	}
	if f.left == 0 {
		return 0, io.EOF
	}
	n, err := f.in.Read(p[:min(len(p), f.left)])
	f.left -= n
	return n, err
}
