package spill

import (
	"bytes"
	"fmt"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/warmpath/warmpath/cache/kvstore"
)

// TestHammer: while values are written, replaced, read, promised and deleted, and the oldest leave the disk with their
// segments, what is read is what was put.
func TestHammer(t *testing.T) {
	x := start(t, t.TempDir(), MinBytes)
	const size = 512 << 10
	var all sync.WaitGroup
	for g := range 4 {
		all.Go(func() {
			owner := netip.AddrFrom4([4]byte{10, 0, 0, byte(g)})
			for i := 0; i < 100 || i < 10_000 && x.disk.Stats().Read == 0; i++ {
				if i >= 100 { // the disk's writer was not let in, and nothing has been read from the disk yet
					time.Sleep(time.Millisecond)
				}
				key := fmt.Sprint("k", (g*37+i*7)%80)
				if f, err := x.store.Reserve(key, size); err == nil {
					value := valueOf(key, size)
					for _, p := range f.Pieces() {
						value = value[copy(p, value):]
					}
					f.Commit(kvstore.Terms{})
				}
				other := fmt.Sprint("k", (g*41+i*11)%80)
				x.store.Exists(other, owner, time.Second)
				if l := x.store.Get(t.Context(), other, owner); l != nil {
					if !bytes.Equal(bytes.Join(l.Pieces(), nil), valueOf(other, size)) {
						t.Errorf("%s has other bytes", other)
					}
					l.Release()
				}
				if i%9 == 0 {
					x.store.Delete(fmt.Sprint("k", i%80))
				}
				x.disk.Stats()
			}
		})
	}
	all.Wait()
	x.settled()
	if n := x.disk.Stats(); n.Written == 0 || n.Read == 0 || n.Corrupt+n.Failures != 0 || n.Bytes > MinBytes {
		t.Errorf("%+v", n)
	}
	for i := range 80 {
		x.get(fmt.Sprint("k", i), size)
	}
}
