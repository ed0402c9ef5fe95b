package spill

import (
	"fmt"
	"os"
	"testing"

	"github.com/warmpath/warmpath/cache/kvstore"
)

// TestDamagedHeader: an overwritten header loses its own value alone, and the file goes on to be used.
func TestDamagedHeader(t *testing.T) {
	dir := t.TempDir()
	x := start(t, dir, MinBytes)
	for i := range 5 {
		x.put(fmt.Sprint("k", i), 100_000, kvstore.Terms{})
		x.settled()
	}
	at := x.disk.index["k1"].at
	x.stop()
	file, err := os.OpenFile(segmentPath(dir, 0), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteAt(make([]byte, 600), at); err != nil {
		t.Fatal(err)
	}
	file.Close()
	for round := range 2 {
		x = start(t, dir, MinBytes)
		if n := x.disk.Stats(); n.Found != 4+round || n.Torn != 0 || n.Corrupt != 1 {
			t.Errorf("found %d, torn %d, corrupt %d; want %d, 0, 1", n.Found, n.Torn, n.Corrupt, 4+round)
		}
		for i := range 5 + round {
			if got := x.get(fmt.Sprint("k", i), 100_000); got != (i != 1) {
				t.Errorf("k%d there: %v", i, got)
			}
		}
		x.put("k5", 100_000, kvstore.Terms{})
		x.settled()
		x.stop()
	}
}

// TestLargerThanTheQueue: a value larger than all that may wait is written when nothing else waits.
func TestLargerThanTheQueue(t *testing.T) {
	dir := t.TempDir()
	x := start(t, dir, MinBytes)
	x.disk.config.MaxQueue = 1 << 20
	for i := range 10 {
		x.put(fmt.Sprint("k", i), 1<<20+28, kvstore.Terms{})
		x.settled()
	}
	if n := x.disk.Stats(); n.Written != 10 || n.Skipped != 0 {
		t.Errorf("%d written, %d skipped", n.Written, n.Skipped)
	}
}
