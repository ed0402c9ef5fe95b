package front

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/daemon/request/message"
	"github.com/warmpath/warmpath/daemon/transport/gate"
)

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
			p := newHolding(h, &message.Inbound{Remote: fmt.Sprintf(c.address, i%10)}, &Epoch{})
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
	from := func(key, address string) *message.Inbound {
		keys := gate.NewKeys([]gate.Key{{Name: "alice", Secret: "a"}, {Name: "bob", Secret: "b"}})
		in := &message.Inbound{Remote: address}
		in.Caller, _ = keys.Check("", key)
		return in
	}
	send := func(in *message.Inbound, size int) (held int, b *bodyReader) {
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
	for _, in := range []*message.Inbound{from("b", "::1"), from("", "::1"), from("", "2001:db8::1")} {
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
		b.free(&message.Inbound{})
	}
	if h.holdings.Taken() != 0 {
		t.Errorf("%d bytes are left", h.holdings.Taken())
	}
}
