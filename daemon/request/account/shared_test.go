package account

import (
	"sync"
	"testing"
)

// TestShared: a client holds no more than is left for others, so that the next one always has room.
func TestShared(t *testing.T) {
	const most = 1200
	var s Shared
	parts := map[string]*Part{}
	fill := func(client string) (n int64) {
		if parts[client] == nil {
			p := s.Part(client)
			parts[client] = &p
		}
		for parts[client].Grow(parts[client].held+1, most) {
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
	second := s.Part("a")
	if second.Grow(1, most) || !second.Grow(0, most) || !parts["a"].Grow(600, most) {
		t.Error("a holds more in a second part, or may not keep what it has")
	}
	second.Release()
	parts["a"].Release()
	parts["a"].Release()
	if n := fill("b"); n != 225 {
		t.Errorf("b holds %d more once a holds nothing; want 225", n)
	}
	parts["b"].Release()
	parts["c"].Release()
	if s.Taken() != 0 || len(s.by) != 0 {
		t.Errorf("%d bytes are left, and %v", s.Taken(), s.by)
	}
}

// TestSharedHammer: clients side by side never hold more than there is.
func TestSharedHammer(t *testing.T) {
	const most = 1 << 20
	var s Shared
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for range 500 {
				p := s.Part(string(rune('a' + i%3)))
				for size := int64(1 << 10); p.Grow(size, most) && size < 1<<20; size *= 2 {
				}
				if n := s.Taken(); n > most {
					t.Errorf("%d bytes are held", n)
				}
				p.Release()
			}
		})
	}
	all.Wait()
	if s.Taken() != 0 || len(s.by) != 0 {
		t.Errorf("%d bytes are left, and %v", s.Taken(), s.by)
	}
}

func TestNetwork(t *testing.T) {
	for address, want := range map[string]string{"2001:db8:0:1::7": "2001:db8:0:1::/64", "fe80::1%eth0": "fe80::/64",
		"192.0.2.1": "192.0.2.1", "::ffff:192.0.2.1": "::ffff:192.0.2.1", "": ""} {
		if got := Network(address); got != want {
			t.Errorf("%s is of %s; want %s", address, got, want)
		}
	}
}
