package conf

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A look reads a file that has not changed for a while no second time. It reads one that has, though length and time of
// writing are as before, and one that is new behind the same name.
func TestLooksReadWhatHasChanged(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.wasm")
	old := time.Now().Add(-time.Hour)
	write(t, path, "1234")
	must(t, os.Chtimes(path, old, old))

	var l looks
	look := func(read int, want, when string) {
		t.Helper()
		before := l.read
		got := l.sumsOf([]string{path})
		if fresh := sumsOf([]string{path}); got[path] != fresh[path] || (want == "") != (got[path] == sum{}) {
			t.Errorf("%s: the sum is not that of %q", when, want)
		}
		if l.read-before != read {
			t.Errorf("%s: the file was read %d times; want %d", when, l.read-before, read)
		}
	}
	age := func() { time.Sleep(settled + 100*time.Millisecond) }

	look(1, "1234", "a file that has just been written")
	look(1, "1234", "still young")
	age()
	look(1, "1234", "old, but read while it was young")
	look(0, "1234", "old")

	write(t, path, "5678")
	must(t, os.Chtimes(path, old, old))
	look(1, "5678", "written in place, with its old length and time")
	age()
	look(1, "5678", "old again")
	look(0, "5678", "and unchanged")

	must(t, os.WriteFile(path+".new", []byte("9abc"), 0o600))
	must(t, os.Chtimes(path+".new", old, old))
	must(t, os.Rename(path+".new", path))
	look(1, "9abc", "renamed over")

	must(t, os.Remove(path))
	look(0, "", "gone")
	if len(l.seen) != 0 {
		t.Errorf("%d files are remembered after the last is gone", len(l.seen))
	}
}
