package arena

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
)

// Config sets how large an arena is, and who shares it.
type Config struct {
	Bytes   int64        // rounded down to pages of PageSize; at least one
	Segment string       // name of a file in /dev/shm that workers map; "" (default) = memory of this process alone
	Mode    os.FileMode  // of the segment; default 0660. Workers must be able to read and write it
	Log     *slog.Logger // gets a line when the segment's name was missing, and when it cannot be restored
}

// Arena is memory, with a map of its free parts. Space is not safe for concurrent use; the memory is as safe as any
// slice.
type Arena struct {
	Space *Space

	// Attached reports that the segment existed before, and that a worker has it mapped. Workers may still read values
	// that an earlier process has leased to them.
	Attached bool

	mem     []byte
	segment *segment // nil = anonymous memory
}

// ErrHeld means that another process has the segment for now.
var ErrHeld = errors.New("another daemon serves it; give each its own name, or stop that one")

// Open maps memory. An error about a segment names the cause and the remedy: another daemon serves it, the file is not
// ours, /dev/shm is too small, workers still map a segment of another size.
func Open(c Config) (*Arena, error) {
	size := c.Bytes / PageSize * PageSize
	if size <= 0 {
		return nil, fmt.Errorf("arena: %d bytes are less than a page of %d", c.Bytes, PageSize)
	}
	if c.Segment == "" {
		mem, err := mapAnonymous(size)
		if err != nil {
			return nil, err
		}
		return &Arena{Space: NewSpace(size), mem: mem}, nil
	}
	if c.Mode == 0 {
		c.Mode = 0o660
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	g, err := openSegment(c, size)
	if err != nil {
		return nil, err
	}
	return &Arena{Space: NewSpace(size), mem: g.mem, segment: g, Attached: g.attached}, nil
}

// Bytes returns the memory of an extent. A writer must be its only user.
func (a *Arena) Bytes(e Extent) []byte { return a.mem[e.Offset : e.Offset+e.Len : e.Offset+e.Len] }

// Pieces returns the memory of a value.
func (a *Arena) Pieces(list []Extent) [][]byte {
	pieces := make([][]byte, len(list))
	for i, e := range list {
		pieces[i] = a.Bytes(e)
	}
	return pieces
}

// Populate takes all of the memory from the system, until ctx ends. Otherwise the first value in a place would wait for
// that: a tenth of the speed, where a virtual machine's host has to find the memory too. The memory may be in use.
func (a *Arena) Populate(ctx context.Context) {
	if a.segment == nil {
		populate(ctx, a.mem)
	}
}

// Tend restores the segment's name if a worker has deleted it. Call it a few times a second.
func (a *Arena) Tend() {
	if a.segment != nil {
		a.segment.tend()
	}
}

// IsTorn reports whether a worker has truncated the segment, or cut a hole into it: its values are lost, and touching
// them may end the process.
func (a *Arena) IsTorn() bool { return a.segment != nil && a.segment.isTorn() }

// Mend gives a torn segment its size and pages again, empty. The memory must not be used meanwhile.
func (a *Arena) Mend() error { return a.segment.mend() }

// Close unmaps the memory, which must not be used any more. It deletes a segment that no worker has mapped. A segment
// that a worker has mapped stays for the next start, and kept is true.
func (a *Arena) Close() (kept bool, err error) {
	if a.segment != nil {
		return a.segment.close()
	}
	return false, unmapAnonymous(a.mem)
}
