package discover

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/dnstest"
	"github.com/warmpath/warmpath/daemon/lab/logtest"
)

func give(addrs ...string) dnstest.Answer { return dnstest.Answer{Addrs: addrs} }

// TestNamesOverTheWire asks a name server for a name whose answer changes: what fails in any way takes no worker away.
func TestNamesOverTheWire(t *testing.T) {
	n := dnstest.Start(t)
	log := new(logtest.Log)
	d := discovery(slog.New(slog.NewTextHandler(log, nil)), System(n.Resolver()))
	n.Set(give("10.0.0.1", "10.0.0.2", "fd00::1"))
	const all = "10.0.0.1:80 10.0.0.2:80 [fd00::1]:80"
	if got := urls(d.Take(t.Context(), sources{Group: Group{Name: "fleet.test.:80"}})); got != all {
		t.Fatalf("at first: %s; want %s", got, all)
	}
	f := func(what, want string, answer dnstest.Answer) {
		t.Helper()
		n.Set(answer)
		began := time.Now()
		d.groups[1].name.ask(t.Context())
		if got := urls(d.Workers()); got != want {
			t.Errorf("%s: %s; want %s", what, got, want)
		}
		if took := time.Since(began); took > resolveTimeout+5*time.Second {
			t.Errorf("%s: asked for %v; want at most %v", what, took, resolveTimeout)
		}
	}
	const a, aaaa = dnstest.TypeA, dnstest.TypeAAAA
	fails := func(kinds map[uint16]byte, addrs ...string) dnstest.Answer {
		return dnstest.Answer{Addrs: addrs, Codes: kinds}
	}
	f("NXDOMAIN", all, fails(map[uint16]byte{a: 3, aaaa: 3}))
	f("SERVFAIL", all, fails(map[uint16]byte{a: 2, aaaa: 2}))
	f("SERVFAIL for IPv4 alone", all, fails(map[uint16]byte{a: 2}, "10.0.0.1", "10.0.0.2", "fd00::1"))
	f("SERVFAIL for IPv6 alone", all, fails(map[uint16]byte{aaaa: 2}, "10.0.0.1", "10.0.0.2", "fd00::1"))
	f("SERVFAIL for IPv6, an address gone", "10.0.0.2:80 [fd00::1]:80", fails(map[uint16]byte{aaaa: 2}, "10.0.0.2"))
	f("NXDOMAIN for IPv6, SERVFAIL for IPv4", "10.0.0.2:80 [fd00::1]:80", fails(map[uint16]byte{a: 2, aaaa: 3}))
	f("all there again", all, give("10.0.0.1", "10.0.0.2", "fd00::1"))
	f("no answer", all, dnstest.Answer{Silent: true})
	f("no address", all, give())
	if got := strings.Count(log.String(), "workers_dns has no answer:"); got > 4 {
		t.Errorf("%d lines of four episodes without an answer:\n%s", got, log.String())
	}
	n.Set(give("10.0.0.1"))
	for _, kinds := range []map[uint16]byte{{aaaa: 2}, {aaaa: 4}} { // a server that knows nothing of IPv6
		fresh := discovery(slog.New(slog.DiscardHandler), System(n.Resolver()))
		n.Set(fails(kinds, "10.0.0.1"))
		if got := urls(fresh.Take(t.Context(), sources{Group: Group{Name: "fleet.test.:80"}})); got != "10.0.0.1:80" {
			t.Errorf("a server without IPv6, %v: %s; want its IPv4", kinds, got)
		}
	}
	f("one is gone, one is new", "10.0.0.2:80 10.0.0.3:80", give("10.0.0.3", "10.0.0.2"))
	f("truncated, then over TCP", "10.0.0.4:80", dnstest.Answer{Addrs: []string{"10.0.0.4"}, Long: true})
	var many []string
	for i := range 60 {
		many = append(many, fmt.Sprintf("10.0.1.%d", i+1))
	}
	n.Set(give(many...))
	d.groups[1].name.ask(t.Context())
	if got := len(d.Workers()); got != 60 {
		t.Errorf("%d workers of 60 addresses in one answer", got)
	}
}
