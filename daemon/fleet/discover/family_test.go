package discover

import (
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/daemon/lab/dnstest"
	"github.com/warmpath/warmpath/daemon/lab/logtest"
)

// TestPaired is the table of which addresses are taken for the same workers.
func TestPaired(t *testing.T) {
	f := func(four, six int, was, want bool) {
		t.Helper()
		var all []netip.Addr
		for i := range four {
			all = append(all, netip.MustParseAddr(fmt.Sprint("10.0.0.", i+1)))
		}
		for i := range six {
			all = append(all, netip.MustParseAddr(fmt.Sprint("fd00::", i+1)))
		}
		if got := paired(all, was); got != want {
			t.Errorf("%d and %d, paired before %v: %v; want %v", four, six, was, got, want)
		}
		n := four + six
		if want {
			n = four
		}
		if got := len(used(all, want)); got != n {
			t.Errorf("%d and %d: %d are used; want %d", four, six, got, n)
		}
	}
	f(0, 0, true, false)
	f(3, 0, true, false)
	f(0, 3, true, false)
	f(1, 1, false, true)
	f(4, 4, false, true)
	f(3, 4, false, false)
	f(3, 4, true, true) // a pod comes, and its AAAA was asked for a moment later
	f(4, 3, true, true)
	f(2, 5, true, false)
}

// TestADualStackNameIsOneWorkerEach follows a name of pods of two families over the wire.
func TestADualStackNameIsOneWorkerEach(t *testing.T) {
	n := dnstest.Start(t)
	log := new(logtest.Log)
	d := discovery(slog.New(slog.NewTextHandler(log, nil)), System(n.Resolver()))
	f := func(want string, answer dnstest.Answer) {
		t.Helper()
		n.Set(answer)
		d.groups[1].name.ask(t.Context())
		if got := urls(d.Workers()); got != want {
			t.Errorf("%v: %s; want %s", answer.Addrs, got, want)
		}
	}
	n.Set(give("10.0.0.1", "10.0.0.2", "fd00::1", "fd00::2"))
	if got := urls(d.Take(t.Context(), sources{Group: Group{Name: "fleet.test.:80"}})); got != "10.0.0.1:80 10.0.0.2:80" {
		t.Fatalf("at first: %s", got)
	}
	f("10.0.0.1:80 10.0.0.2:80 10.0.0.3:80", give("10.0.0.1", "10.0.0.2", "10.0.0.3", "fd00::1", "fd00::2"))
	f("10.0.0.1:80", give("10.0.0.1", "fd00::1", "fd00::2"))
	f("10.0.0.1:80", dnstest.Answer{Addrs: []string{"10.0.0.1"}, Codes: map[uint16]byte{dnstest.TypeAAAA: 2}})
	f("[fd00::1]:80 [fd00::2]:80", give("fd00::1", "fd00::2")) // no IPv4 any more
	f("10.0.0.1:80 [fd00::1]:80 [fd00::2]:80 [fd00::3]:80", give("10.0.0.1", "fd00::1", "fd00::2", "fd00::3"))
	if got := strings.Count(log.String(), "taken for the same workers"); got != 1 {
		t.Errorf("%d lines; want one:\n%s", got, log.String())
	}
}
