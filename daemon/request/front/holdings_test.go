package front

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/warmpath/warmpath/daemon/request/exchange"
	"github.com/warmpath/warmpath/daemon/transport/gate"
)

// TestHoldings: a client holds no more than is left for others, so that the next one always has room.
func TestHoldings(t *testing.T) {
	const most = 1200
	var h holdings
	fill := func(client string) (n int64) {
		for h.take(client, 1, most) {
			n++
		}
		return n
	}
	for _, c := range []struct {
		client string
		want   int64
	}{{"a", 600}, {"b", 300}, {"a", 0}, {"c", 150}} {
		if n := fill(c.client); n != c.want {
			t.Errorf("%s holds %d more; want %d", c.client, n, c.want)
		}
	}
	h.give("a", 600)
	if n := fill("b"); n != 225 {
		t.Errorf("b holds %d more once a holds nothing; want 225", n)
	}
	h.give("b", 525)
	h.give("c", 150)
	if h.all != 0 || len(h.by) != 0 {
		t.Errorf("%d bytes are left, and %v", h.all, h.by)
	}
}

// TestHoldingsHammer: clients side by side never hold more than there is.
func TestHoldingsHammer(t *testing.T) {
	const most = 1 << 20
	var h holdings
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for range 500 {
				p := holding{of: &h, log: slog.New(slog.DiscardHandler), client: string(rune('a' + i%3)), most: most}
				for size := 1 << 10; p.upTo(size) && size < 1<<20; size *= 2 {
				}
				h.mu.Lock()
				if h.all > most {
					t.Errorf("%d bytes are held", h.all)
				}
				h.mu.Unlock()
				p.drop()
			}
		})
	}
	all.Wait()
	if h.all != 0 || len(h.by) != 0 {
		t.Errorf("%d bytes are left, and %v", h.all, h.by)
	}
}

// TestBodiesOfOneNetwork: a host that takes another address of its IPv6 network for each body holds no more than one
// that keeps its address. IPv4 addresses are counted apart, in whichever form.
func TestBodiesOfOneNetwork(t *testing.T) {
	for _, c := range []struct {
		address string
		one     bool
	}{{"2001:db8:0:1::%x", true}, {"fe80::%x%%eth0", true}, {"2001:db8:0:%x::1", false}, {"192.0.2.1%d", false},
		{"::ffff:192.0.2.1%d", false}} {
		h := &handler{log: slog.New(slog.DiscardHandler)}
		held := 0
		for i := range 64 {
			p := newHolding(h, &exchange.Inbound{Remote: fmt.Sprintf(c.address, i%10)}, &Epoch{})
			if p.upTo(1 << 20) {
				held++
			}
		}
		if one := held < 40; one != c.one { // one client has half of the 64 MiB
			t.Errorf("%s: %d bodies of a MiB are held", c.address, held)
		}
	}
}

// TestBodiesOfOneClient: what a client sends beyond its share is not held, but left to the Tail; another client's bodies
// are held whole. Short ones always are.
func TestBodiesOfOneClient(t *testing.T) {
	var log strings.Builder
	h := &handler{log: slog.New(slog.NewTextHandler(&log, nil))}
	epoch := &Epoch{BufferBody: 1 << 20} // 64 MiB by all, 32 by one client
	from := func(key, address string) *exchange.Inbound {
		keys := gate.NewKeys([]gate.Key{{Name: "alice", Secret: "a"}, {Name: "bob", Secret: "b"}})
		in := &exchange.Inbound{Remote: address}
		in.Caller, _ = keys.Check("", key)
		return in
	}
	send := func(in *exchange.Inbound, size int) (held int, b *bodyReader) {
		text := strings.Repeat("x", size)
		b = &bodyReader{r: strings.NewReader(text), left: int64(size), room: 1 << 30}
		b.buffer = newBuffer(int64(size), newHolding(h, in, epoch))
		err := b.readStart(b, int64(size), epoch.BufferBody)
		held = len(b.buffer.first)
		if held == size != errors.Is(err, io.EOF) || held < size && err != nil {
			t.Fatalf("%d of %d bytes are held: %v", held, size, err)
		}
		if rest, _ := io.ReadAll(b); held+len(rest) != size {
			t.Errorf("%d bytes are held and %d are left of %d", held, len(rest), size)
		}
		return held, b
	}
	var bodies []*bodyReader
	whole := 0
	for range 50 {
		held, b := send(from("a", "::1"), 1<<20)
		if held == 1<<20 {
			whole++
		} else if held > 512<<10 {
			t.Errorf("%d bytes are held", held)
		}
		bodies = append(bodies, b)
	}
	if whole < 30 || whole > 33 {
		t.Errorf("%d bodies of a MiB are held; want 32", whole)
	}
	for _, in := range []*exchange.Inbound{from("b", "::1"), from("", "::1"), from("", "2001:db8::1")} {
		held, b := send(in, 1<<20)
		if held != 1<<20 {
			t.Errorf("another client's body: %d bytes are held", held)
		}
		bodies = append(bodies, b)
	}
	if held, _ := send(from("a", "::2"), freeBody); held != freeBody {
		t.Errorf("a short body: %d bytes are held", held)
	}
	if n := strings.Count(log.String(), "client=alice"); n != 1 {
		t.Errorf("%d lines: %s", n, log.String())
	}
	for _, b := range bodies {
		b.free(&exchange.Inbound{})
	}
	if h.holdings.all != 0 {
		t.Errorf("%d bytes are left", h.holdings.all)
	}
}
