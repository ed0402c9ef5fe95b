package kvcache

import (
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/warmpath/warmpath/daemon/fleet/discover"
	"github.com/warmpath/warmpath/daemon/lab/dnstest"
	"github.com/warmpath/warmpath/daemon/lab/porttest"
	"github.com/warmpath/warmpath/daemon/lab/waittest"
)

// twoHosts returns two addresses of loopback with one free port.
func twoHosts(t *testing.T) (a, b, port string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.2:0")
	if err != nil {
		t.Skip("SKIPPED: 127.0.0.2 is no address of this machine, so members by DNS are not tested here")
	}
	l.Close()
	port = fmt.Sprint(porttest.Row(t, 1, "127.0.0.1", "127.0.0.2"))
	return net.JoinHostPort("127.0.0.1", port), net.JoinHostPort("127.0.0.2", port), port
}

// TestMembersByDNS: the members of a pool are the addresses of a name. An address that leaves the name gets no more
// values, and has its share again when it returns.
func TestMembersByDNS(t *testing.T) {
	a, b, port := twoHosts(t)
	names := dnstest.Start(t)
	both, one := dnstest.Answer{Addrs: []string{"127.0.0.1", "127.0.0.2"}}, dnstest.Answer{Addrs: []string{"127.0.0.1"}}
	names.Set(both)
	var all []*Cache
	for _, self := range []string{a, b} {
		c := config()
		c.RESP, c.MaxBytes = self, 64<<20
		c.L2 = &L2{Members: Members{Name: "pool.test.:" + port}, Self: self, Resolve: discover.System(names.Resolver()),
			Through: true, Promote: "always", Timeout: 5 * time.Second}
		k, _ := running(t, c)
		all = append(all, k)
	}
	c := client(t, all[0])
	round := 0
	// share puts keys at one daemon, and returns how many of them the other has.
	share := func() (n int) {
		round++
		for i := range 40 {
			if err := c.Set(t.Context(), fmt.Sprint("k", round, "-", i), "v", 0).Err(); err != nil {
				t.Fatal(err)
			}
		}
		for i := range 40 {
			if _, _, ok := all[1].store.Info(fmt.Sprint("r\x00k", round, "-", i)); ok {
				n++
			}
		}
		return n
	}
	waittest.Until(t, "both have a share", func() bool { n := share(); return n > 5 && n < 35 })
	names.Set(one)
	waittest.Until(t, "who left the name gets nothing", func() bool { return share() == 0 })
	for i := range 40 {
		if got, err := c.Get(t.Context(), fmt.Sprint("k", round, "-", i)).Result(); got != "v" || err != nil && err != redis.Nil {
			t.Errorf("GET of a value of the member that is left: %q, %v", got, err)
		}
	}
	names.Set(dnstest.Answer{Silent: true})
	if n := share(); n != 0 {
		t.Errorf("%d values went to who left, as the name has no answer", n)
	}
	names.Set(both)
	waittest.Until(t, "who is back has a share", func() bool { n := share(); return n > 5 && n < 35 })
}
