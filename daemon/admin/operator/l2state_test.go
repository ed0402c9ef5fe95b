package operator

import (
	"testing"
	"time"

	"github.com/warmpath/warmpath/cache/kvstore/remote"
)

// L2 is up only if each of its servers is, and takes values.
func TestStateOfL2(t *testing.T) {
	f := func(want string, servers ...remote.ServerStats) {
		t.Helper()
		if got := stateOfL2(servers); got != want {
			t.Errorf("%+v: %q; want %q", servers, got, want)
		}
	}
	good := remote.ServerStats{Address: "a:1", Up: true}
	f("up")
	f("up", good, good)
	f("b:1 down for 1m30s", good, remote.ServerStats{Address: "b:1", DownFor: 90 * time.Second})
	f("b:1 down; c:1 refuses values: READONLY", remote.ServerStats{Address: "b:1"}, good,
		remote.ServerStats{Address: "c:1", Up: true, Refuses: "READONLY"})
}
