package kvcache

import (
	"context"
	"log/slog"
	"net/netip"
	"os"
	"testing"
)

// TestSelf: the member that is this daemon.
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

// TestMember: the addresses that may be a member's, by number or by name.
func TestMember(t *testing.T) {
	f := &far{life: context.Background(), log: slog.New(slog.DiscardHandler)}
	f.note([]string{"10.0.0.1:6380", "[fd00::1]:6380", "localhost:6380", "no port"})
	for addr, want := range map[string]bool{"10.0.0.1": true, "fd00::1": true, "127.0.0.1": true, "10.0.0.2": false} {
		if got := f.Member(netip.MustParseAddr(addr)); got != want {
			t.Errorf("%s may be a member: %v", addr, got)
		}
	}
	for addr := range addressesHere(f.log) {
		if !f.Member(addr) {
			t.Errorf("%s of this machine may be no member", addr)
		}
	}
}
