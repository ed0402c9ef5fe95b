package resp

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/warmpath/warmpath/cache/kvstore"
	"github.com/warmpath/warmpath/daemon/lab/waittest"
)

// fleeting is a tier behind with one value, which the test makes it lose.
type fleeting struct {
	reads atomic.Int64
	lost  atomic.Bool
}

func (f *fleeting) Exists(key string, _ time.Time) bool { return key == "r\x00k" && !f.lost.Load() }

func (f *fleeting) Get(_ context.Context, key string, place kvstore.Place) (bool, error) {
	if !f.Exists(key, time.Time{}) {
		return false, nil
	}
	pieces, err := place(kvstore.Arrival{Size: 3, Passing: true})
	if err != nil {
		return false, err
	}
	copy(pieces[0], "far")
	f.reads.Add(1)
	return true, nil
}

func (f *fleeting) Put(string, time.Time, *kvstore.Lease) (<-chan struct{}, bool) { return nil, false }
func (f *fleeting) Delete(string) bool                                            { return false }

// For LMCache's native client, which sends no HELLO, CLIENT, COMMAND or INFO first, EXISTS brings a remote value to
// memory. For other clients it does not.
func TestExistsFetchesForNativeClients(t *testing.T) {
	f := func(first, want string) {
		t.Helper()
		far := &fleeting{}
		store, err := kvstore.Open(kvstore.Config{MaxBytes: 8 << 20, Far: far})
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close(5 * time.Second)
		s, _ := serve(t, Config{Store: store})
		c := dial(t, s)
		if got := ask(t, c, first+cmd("EXISTS", "k", "none")); !strings.HasSuffix(got, ":1\r\n") {
			t.Fatalf("EXISTS: %q", got)
		}
		if first == "" {
			waittest.Until(t, "it is fetched", func() bool { return store.Stats().Pins == 1 })
		} else if n := far.reads.Load(); n != 0 {
			t.Errorf("after %q: it was fetched", first)
		}
		far.lost.Store(true)
		if got := ask(t, c, cmd("GET", "k")); got != want {
			t.Errorf("GET after %q: %q; want %q", first, got, want)
		}
	}
	f("", "$3\r\nfar\r\n")
	f(cmd("CLIENT", "ID"), "$-1\r\n")
}
