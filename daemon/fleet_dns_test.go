package daemon

import (
	"fmt"
	"net"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/daemon/lab/dnstest"
	"github.com/warmpath/warmpath/daemon/lab/porttest"
)

// TestFleetFollowsItsName runs a daemon on a name: a new address serves, one that is gone ends what it has and gets
// nothing more.
func TestFleetFollowsItsName(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("needs 127.0.0.0/8 on loopback")
	}
	n := dnstest.Start(t)
	was := nameServers
	t.Cleanup(func() { nameServers = was })
	nameServers = n.Resolver()
	held, release := make(chan bool, 1), make(chan bool)
	port := strconv.Itoa(porttest.Row(t, 1, "127.0.0.2", "127.0.0.3"))
	for _, ip := range []string{"127.0.0.2", "127.0.0.3"} {
		l, err := net.Listen("tcp", net.JoinHostPort(ip, port))
		if err != nil {
			t.Fatal(err)
		}
		s := httptest.NewUnstartedServer(fakeWorker(t, releasing(ip, held, release)).Config.Handler)
		s.Listener.Close()
		s.Listener = l
		s.Start()
		t.Cleanup(s.Close)
	}
	n.Set(dnstest.Answer{Addrs: []string{"127.0.0.2"}})
	r := start(t, fromDefaults(fmt.Sprintf("workers_dns = \"fleet.test.:%s\"", port)), 1)
	ask := func(header ...string) seen { return r.do("POST", "/v1/completions", aCompletion, header...) }
	if s := ask(); !strings.Contains(s.body, "127.0.0.2") {
		t.Fatalf("%d %s", s.status, s.body)
	}
	done := make(chan seen, 1)
	go func() { done <- ask("X-Hold", "1") }()
	<-held
	n.Set(dnstest.Answer{Addrs: []string{"127.0.0.3"}})
	eventually(t, "the new address serves", func() bool { return strings.Contains(ask().body, "127.0.0.3") })
	eventually(t, "the old one is gone", func() bool { return len(r.describe()[0].Workers) == 1 })
	for range 10 {
		if s := ask(); s.status != 200 || !strings.Contains(s.body, "127.0.0.3") {
			t.Errorf("%d %s; want the new address alone", s.status, s.body)
		}
	}
	close(release)
	if s := <-done; s.status != 200 || !strings.Contains(s.body, "127.0.0.2") {
		t.Errorf("in flight at the address that went: %d %v %s", s.status, s.err, s.body)
	}
}
