package zmtp

import (
	"context"
	"net"
	"path/filepath"
	"sync"
	"testing"
)

// TestClosedAddressIsFree: peers that come meanwhile keep nobody from listening at the address anew.
func TestClosedAddressIsFree(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	ctx, end := context.WithCancel(t.Context())
	var peers sync.WaitGroup
	defer peers.Wait()
	defer end()
	for range 4 {
		peers.Go(func() {
			for ctx.Err() == nil {
				if c, err := net.Dial("unix", path); err == nil {
					c.Close()
				}
			}
		})
	}
	for range 1000 {
		l, err := Listen(ctx, "ipc://"+path, Config{}, func(*Conn) {})
		if err != nil {
			t.Fatal(err)
		}
		l.Close()
	}
}
