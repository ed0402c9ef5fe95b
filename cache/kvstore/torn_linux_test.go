package kvstore

import (
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"
)

// TestTornSegment: a worker truncates the segment, or cuts a hole. What touches its bytes gets an error, all values are
// misses, and once the last reader has gone the memory is taken anew.
func TestTornSegment(t *testing.T) {
	t.Run("truncated", func(t *testing.T) { tearApart(t, func(path string) error { return os.Truncate(path, 0) }) })
	t.Run("opened with O_TRUNC, and as long again", func(t *testing.T) {
		tearApart(t, func(path string) error {
			f, err := os.OpenFile(path, os.O_RDWR|os.O_TRUNC, 0)
			if err != nil {
				return err
			}
			defer f.Close()
			return f.Truncate(8 << 20)
		})
	})
}

func tearApart(t *testing.T, cut func(path string) error) {
	name := fmt.Sprintf("warmpath-test-torn-%d-%d", os.Getpid(), time.Now().UnixNano())
	s := open(t, Config{MaxBytes: 8 << 20, Segment: name})
	must(t, put(s, "k", "k", 1<<20, Terms{}))
	reader := s.Get(t.Context(), "k", nobody)
	writer, err := s.Reserve("w", 1<<20)
	must(t, err)
	must(t, cut("/dev/shm/"+name))
	err = Touch(func() { _, _ = io.Copy(io.Discard, strings.NewReader(string(reader.Pieces()[0]))) })
	if short, _ := os.Stat("/dev/shm/" + name); short.Size() == 0 && err != ErrTorn {
		t.Errorf("reading what is gone: %v", err)
	}
	s.tend(time.Now())
	if l := s.Get(t.Context(), "k", nobody); l != nil || s.Exists("k", alice, time.Minute) {
		t.Error("a lost value is there")
	}
	if _, err := s.Reserve("x", 10); err != ErrTorn {
		t.Errorf("a put beside a reader of what is gone: %v", err)
	}
	reader.Release()
	if writer.Commit(Terms{}) {
		t.Error("a value is taken whose first bytes may be lost")
	}
	s.tend(time.Now())
	must(t, put(s, "k", "new", 1<<20, Terms{}))
	if text, _ := get(s, "k", nobody, 3); text != "new" {
		t.Errorf("after it was mended: %q", text)
	}
	if n := s.Stats(); n.Entries != 1 || n.ReservedBytes != 1<<20 {
		t.Errorf("%+v", n)
	}
}

// TestTouchPassesOnOtherPanics: a fault of the program is none of a worker's.
func TestTouchPassesOnOtherPanics(t *testing.T) {
	defer func() {
		if p := recover(); p == nil {
			t.Error("a nil pointer's panic is swallowed")
		}
	}()
	var e *entry
	_ = Touch(func() { _ = e.size })
}
