package kvstore

import (
	"context"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"
)

// A value that a lookup fetched leaves memory when its time is over, also if it was read meanwhile. One whose reader
// does not come back leaves at once.
func TestLinger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		far := newLossy("k")
		s := open(t, Config{Far: far})
		ctx, cancel := context.WithCancel(t.Context())
		go s.Run(ctx)
		defer cancel()
		read := func(end func(*Lease), gets, values int) {
			t.Helper()
			l := s.Get(ctx, "k", netip.Addr{})
			if l == nil {
				t.Fatal("the value is not there")
			}
			end(l)
			if n := s.Stats(); far.count() != gets || n.Entries != values || n.Leases != 0 {
				t.Errorf("%d reads behind, %d values, %d leases; want %d, %d, 0", far.count(), n.Entries, n.Leases, gets, values)
			}
		}
		read((*Lease).Release, 1, 0)
		read((*Lease).Linger, 2, 1)
		read((*Lease).Release, 2, 1)
		read((*Lease).Linger, 2, 1)
		time.Sleep(lingerTime + time.Second)
		if n := s.Stats().Entries; n != 0 || s.memory.lingering != 0 || len(s.memory.lingerers) != 0 {
			t.Errorf("%d values are left, %d bytes linger", n, s.memory.lingering)
		}
		read((*Lease).Release, 3, 0)
	})
}
