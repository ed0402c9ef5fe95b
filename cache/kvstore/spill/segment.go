package spill

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// segment is one file. Disk.mu guards all but file and raw.
type segment struct {
	file  *os.File
	raw   *os.File // the same, past the page cache; nil = not supported by the file system
	path  string
	bytes int64
	refs  int  // reads under way
	gone  bool // unlinked: closed by the last read
	keys  map[string]struct{}

	leaving bool // it is about to be deleted: no more promises of its values
}

// extent is where a value is in the file.
type extent struct {
	segment *segment // nil = saved has the value
	at      int64
	record  record
	saved   *[]byte // a promised value whose segment is gone
}

func segmentPath(dir string, n uint64) string { return filepath.Join(dir, fmt.Sprintf("%016x.kv", n)) }

// segmentsOf lists the numbers of the segments in a folder, the oldest first.
func segmentsOf(dir string) (numbers []uint64, err error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.kv"))
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		var n uint64
		if _, err := fmt.Sscanf(filepath.Base(f), "%016x.kv", &n); err == nil {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	return numbers, nil
}

// scan reads the headers of a segment and calls found for each live record. After a damaged header it goes on at the
// next whole header. If no whole header follows, it cuts the rest off.
func scan(f *os.File, found func(at int64, r record)) (s scanned, err error) {
	st, err := f.Stat()
	if err != nil {
		return s, err
	}
	for at := int64(0); at < st.Size(); {
		r, err := decode(f, at, st.Size())
		if errors.Is(err, errDamaged) {
			next := nextRecord(f, at, st.Size())
			if next > 0 {
				s.damaged++
				at = next
				continue
			}
		}
		if err != nil {
			return scanned{bytes: at, damaged: s.damaged, torn: true}, f.Truncate(at)
		}
		if r.state == live {
			found(at, r)
		}
		at += r.bytes()
	}
	s.bytes = st.Size()
	return s, nil
}

// scanned describes a segment that was read.
type scanned struct {
	bytes   int64
	damaged int // headers: what lies between one and the next whole header is lost
	torn    bool
}

// nextRecord returns the offset of the next record after a damaged header; 0 = there is none.
func nextRecord(f *os.File, at, end int64) int64 {
	for at += block; at < end; at += block {
		if _, err := decode(f, at, end); err == nil {
			return at
		}
	}
	return 0
}

// close closes the file of a segment that has no readers any more.
func (g *segment) close() {
	if g.gone && g.refs == 0 {
		g.closeFiles()
	}
}

func (g *segment) closeFiles() {
	g.file.Close()
	if g.raw != nil {
		g.raw.Close()
	}
}
