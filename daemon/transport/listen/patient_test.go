package listen

import (
	"errors"
	"net"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// failing is a listener whose first accepts fail.
type failing struct {
	net.Listener
	errs chan error
}

func (f *failing) Accept() (net.Conn, error) {
	if err, ok := <-f.errs; ok {
		return nil, err
	}
	return nil, net.ErrClosed
}
func (f *failing) Close() error   { close(f.errs); return nil }
func (f *failing) Addr() net.Addr { return &net.TCPAddr{} }

func TestPatientOutlastsAcceptsThatFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &failing{errs: make(chan error, 100)}
		p := NewPatient(f, nil)
		ended := make(chan error, 1)
		go func() { _, err := p.Accept(); ended <- err }()
		for range 60 { // a minute without a descriptor
			f.errs <- &net.OpError{Op: "accept", Err: syscall.EMFILE}
			time.Sleep(time.Second)
		}
		select {
		case err := <-ended:
			t.Fatalf("Accept ended: %v", err)
		default:
		}
		p.Close()
		if err := <-ended; !errors.Is(err, net.ErrClosed) {
			t.Errorf("after Close: %v; want net.ErrClosed", err)
		}
	})
}

func TestRoom(t *testing.T) {
	f := func(limit int, k Kept, clients, admin int) {
		t.Helper()
		if c, a := Room(limit, k); c != clients || a != admin {
			t.Errorf("Room(%d, %+v) = %d, %d; want %d, %d", limit, k, c, a, clients, admin)
		}
	}
	f(64, Kept{Workers: []int{2}}, 16, 8)
	f(400, Kept{Workers: []int{2}}, 163, 50)
	f(1024, Kept{Workers: []int{8}, Redis: true}, 408, 128)
	f(20000, Kept{Workers: []int{2}}, 9860, 256)
	f(20000, Kept{Workers: []int{2}, Doors: 2000}, 8860, 256)
	f(20_000, Kept{Workers: []int{10_000}}, 2614, 256)
	f(20_000, Kept{Workers: []int{1000, 4, 4}}, 7848, 256)
	f(8, Kept{Workers: []int{2}}, fewestClients, 8) // too low for anything: try
	for _, clients := range []int{1, 5, 100, 20000, 1000000} {
		k := Kept{Workers: []int{3}}
		need := Needs(clients, k)
		if c, _ := Room(need, k); c < clients {
			t.Errorf("Needs(%d) = %d, which has room for %d", clients, need, c)
		}
		if c, _ := Room(need-1, k); c >= clients && clients > fewestClients {
			t.Errorf("Needs(%d) = %d; one less has room for %d", clients, need, c)
		}
	}
	if need := Needs(20_000, Kept{Workers: []int{64}}); need != 40_528 {
		t.Errorf("docs/sizing.md has 40,528 for 20,000 clients and 64 workers; Needs has %d", need)
	}
}
