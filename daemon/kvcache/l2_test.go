package kvcache

import (
	"net/netip"
	"os"
	"testing"
)

// TestSelf: which member is this daemon.
func TestSelf(t *testing.T) {
	here := map[netip.Addr]bool{netip.MustParseAddr("10.0.0.1"): true}
	host, _ := os.Hostname()
	f := func(member, door string, want bool) {
		t.Helper()
		if got := isHere(member, door, here); got != want {
			t.Errorf("isHere(%q, %q) = %v", member, door, got)
		}
	}
	f("10.0.0.1:6380", "0.0.0.0:6380", true)
	f("10.0.0.1:6380", ":6380", true)
	f("10.0.0.1:6380", ":6381", false)
	f("10.0.0.2:6380", ":6380", false)
	f("127.0.0.1:6380", "127.0.0.1:6380", true)
	f(host+":6380", ":6380", true)
	f("other:6380", ":6380", false)
	f("10.0.0.1", ":6380", false)
}
