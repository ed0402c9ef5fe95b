package daemon

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/warmpath/warmpath/conf"
)

// nameServer answers DNS queries on a socket: with addrs, with a code, or not at all.
type nameServer struct {
	mu     sync.Mutex // guards all below
	addrs  []netip.Addr
	codes  map[uint16]byte // by query type: 2 = SERVFAIL, 3 = NXDOMAIN
	silent bool
	long   bool // does not fit into a datagram
	asked  map[uint16]int
}

const typeA, typeAAAA = 1, 28

func (n *nameServer) set(change func(*nameServer)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.addrs, n.codes, n.silent, n.long = nil, nil, false, false
	change(n)
}

func give(addrs ...string) func(*nameServer) {
	return func(n *nameServer) {
		for _, a := range addrs {
			n.addrs = append(n.addrs, netip.MustParseAddr(a))
		}
	}
}

// answer is the answer to a query (RFC 1035, section 4.1), nil for none.
func (n *nameServer) answer(query []byte, stream bool) []byte {
	n.mu.Lock()
	defer n.mu.Unlock()
	end := bytes.IndexByte(query[12:], 0) + 13 // of the name
	kind := binary.BigEndian.Uint16(query[end:])
	n.asked[kind]++
	if n.silent {
		return nil
	}
	out := append([]byte(nil), query[:end+4]...)
	out[2], out[3] = 0x84, 0x80|n.codes[kind] // an authoritative answer
	copy(out[6:12], []byte{0, 0, 0, 0, 0, 0})
	if n.long && !stream {
		out[2] |= 2 // truncated: ask again over TCP
		return out
	}
	count := 0
	for _, a := range n.addrs {
		if a.Is4() == (kind == typeA) && n.codes[kind] == 0 {
			raw := a.AsSlice()
			out = append(out, 0xc0, 12, byte(kind>>8), byte(kind), 0, 1, 0, 0, 0, 30, 0, byte(len(raw))) // a TTL of 30 s
			out = append(out, raw...)
			count++
		}
	}
	binary.BigEndian.PutUint16(out[6:], uint16(count))
	return out
}

// startNameServer makes it the one that workers_dns asks.
func startNameServer(t *testing.T) *nameServer {
	t.Helper()
	n := &nameServer{asked: map[uint16]int{}}
	packets, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	streams, err := net.Listen("tcp", packets.LocalAddr().String())
	if err != nil {
		t.Skipf("the port of UDP is taken in TCP: %v", err)
	}
	was := nameServers
	t.Cleanup(func() { packets.Close(); streams.Close(); nameServers = was })
	nameServers = &net.Resolver{PreferGo: true, StrictErrors: was.StrictErrors, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, packets.LocalAddr().String())
	}}
	go func() {
		b := make([]byte, 4096)
		for {
			k, from, err := packets.ReadFrom(b)
			if err != nil {
				return
			}
			if out := n.answer(b[:k], false); out != nil {
				packets.WriteTo(out, from)
			}
		}
	}()
	go func() {
		for {
			c, err := streams.Accept()
			if err != nil {
				return
			}
			b := make([]byte, 4096)
			c.SetDeadline(time.Now().Add(5 * time.Second))
			if k, err := c.Read(b); err == nil && k > 2 {
				if out := n.answer(b[2:k], true); out != nil {
					c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(out))), out...))
				}
			}
			c.Close()
		}
	}()
	return n
}

// TestNamesOverTheWire asks a name server for a name whose answer changes: what fails in any way takes no worker away.
func TestNamesOverTheWire(t *testing.T) {
	n := startNameServer(t)
	log := new(lockedBuffer)
	d := newDiscovery(slog.New(slog.NewTextHandler(log, nil)), lookup, nil)
	n.set(give("10.0.0.1", "10.0.0.2", "fd00::1"))
	const all = "10.0.0.1:80 10.0.0.2:80 [fd00::1]:80"
	if got := urls(d.take(t.Context(), conf.Pool{WorkersDNS: "fleet.test.:80"})); got != all {
		t.Fatalf("at first: %s; want %s", got, all)
	}
	f := func(what, want string, change func(*nameServer)) {
		t.Helper()
		n.set(change)
		began := time.Now()
		d.ask(t.Context())
		if got := urls(d.workers()); got != want {
			t.Errorf("%s: %s; want %s", what, got, want)
		}
		if took := time.Since(began); took > resolveTimeout+5*time.Second {
			t.Errorf("%s: asked for %v; want at most %v", what, took, resolveTimeout)
		}
	}
	fails := func(kinds map[uint16]byte, addrs ...string) func(*nameServer) {
		return func(n *nameServer) { give(addrs...)(n); n.codes = kinds }
	}
	f("NXDOMAIN", all, fails(map[uint16]byte{typeA: 3, typeAAAA: 3}))
	f("SERVFAIL", all, fails(map[uint16]byte{typeA: 2, typeAAAA: 2}))
	f("SERVFAIL for IPv4 alone", all, fails(map[uint16]byte{typeA: 2}, "10.0.0.1", "10.0.0.2", "fd00::1"))
	f("SERVFAIL for IPv6 alone", all, fails(map[uint16]byte{typeAAAA: 2}, "10.0.0.1", "10.0.0.2", "fd00::1"))
	f("SERVFAIL for IPv6, an address gone", "10.0.0.2:80 [fd00::1]:80", fails(map[uint16]byte{typeAAAA: 2}, "10.0.0.2"))
	f("NXDOMAIN for IPv6, SERVFAIL for IPv4", "10.0.0.2:80 [fd00::1]:80", fails(map[uint16]byte{typeA: 2, typeAAAA: 3}))
	f("all there again", all, give("10.0.0.1", "10.0.0.2", "fd00::1"))
	f("no answer", all, func(n *nameServer) { n.silent = true })
	f("no address", all, give())
	if got := strings.Count(log.String(), "workers_dns has no answer:"); got > 4 {
		t.Errorf("%d lines of four episodes without an answer:\n%s", got, log.String())
	}
	n.set(give("10.0.0.1"))
	for _, kinds := range []map[uint16]byte{{typeAAAA: 2}, {typeAAAA: 4}} { // a server that knows nothing of IPv6
		fresh := newDiscovery(slog.New(slog.DiscardHandler), lookup, nil)
		n.set(fails(kinds, "10.0.0.1"))
		if got := urls(fresh.take(t.Context(), conf.Pool{WorkersDNS: "fleet.test.:80"})); got != "10.0.0.1:80" {
			t.Errorf("a server without IPv6, %v: %s; want its IPv4", kinds, got)
		}
	}
	f("one is gone, one is new", "10.0.0.2:80 10.0.0.3:80", give("10.0.0.3", "10.0.0.2"))
	f("truncated, then over TCP", "10.0.0.4:80", func(n *nameServer) { give("10.0.0.4")(n); n.long = true })
	var many []string
	for i := range 60 {
		many = append(many, fmt.Sprintf("10.0.1.%d", i+1))
	}
	n.set(give(many...))
	d.ask(t.Context())
	if got := len(d.workers()); got != 60 {
		t.Errorf("%d workers of 60 addresses in one answer", got)
	}
}

// TestFleetFollowsItsName runs a daemon on a name: a new address serves, one that is gone ends what it has and gets nothing more.
func TestFleetFollowsItsName(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs 127.0.0.0/8 on loopback")
	}
	n := startNameServer(t)
	held, release := make(chan bool, 1), make(chan bool)
	serve := func(at string) http.HandlerFunc {
		return func(rw http.ResponseWriter, r *http.Request) {
			if r.Header.Get("X-Hold") != "" {
				held <- true
				<-release
			}
			fmt.Fprintf(rw, `{"choices":[{"index":0,"text":%q,"finish_reason":"stop"}]}`, at)
		}
	}
	port := ""
	for _, ip := range []string{"127.0.0.2", "127.0.0.3"} {
		l, err := net.Listen("tcp", net.JoinHostPort(ip, port))
		if err != nil {
			var busy *net.OpError
			if errors.As(err, &busy) && port != "" {
				t.Skipf("the port is taken on another address: %v", err)
			}
			t.Fatal(err)
		}
		_, port, _ = net.SplitHostPort(l.Addr().String())
		s := httptest.NewUnstartedServer(fakeWorker(t, serve(ip)).Config.Handler)
		s.Listener.Close()
		s.Listener = l
		s.Start()
		t.Cleanup(s.Close)
	}
	n.set(give("127.0.0.2"))
	r := start(t, fromDefaults(fmt.Sprintf("workers_dns = \"fleet.test.:%s\"", port)), 1)
	ask := func(header ...string) seen { return r.do("POST", "/v1/completions", aCompletion, header...) }
	if s := ask(); !strings.Contains(s.body, "127.0.0.2") {
		t.Fatalf("%d %s", s.status, s.body)
	}
	done := make(chan seen, 1)
	go func() { done <- ask("X-Hold", "1") }()
	<-held
	n.set(give("127.0.0.3"))
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
