package events

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/cache/zmtp"
	"github.com/warmpath/warmpath/daemon/lab/porttest"
	"github.com/warmpath/warmpath/daemon/lab/vllmsim/engine"
)

// publish starts a publisher and a reader of it.
func publish(t *testing.T, cfg Config) (*Publisher, *zmtp.Conn) {
	t.Helper()
	cfg.Endpoint = "tcp://" + porttest.Address(t)
	cfg.Replay = "tcp://" + porttest.Address(t)
	p, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p, subscribe(t, p)
}

func dial(t *testing.T, addr string, c zmtp.Config) *zmtp.Conn {
	t.Helper()
	ctx, end := context.WithTimeout(context.Background(), 10*time.Second)
	t.Cleanup(end)
	conn, err := zmtp.Dial(ctx, addr, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// subscribe makes a reader, and waits until the publisher knows of it.
func subscribe(t *testing.T, p *Publisher) *zmtp.Conn {
	t.Helper()
	c := dial(t, p.Source().Endpoint, zmtp.Config{Kind: zmtp.SUB, Subscribe: []string{""}})
	for range 1000 {
		if p.Subscribers() > 0 {
			return c
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatal("the subscription never arrives")
	return nil
}

func (p *Publisher) publishSome(n int) {
	for range n {
		p.Publish([]engine.Change{{Kind: engine.Removed, Hashes: []uint64{p.Next()}}})
	}
}

// TestFaults: each fault does to the sequence what its name promises, for as many messages as were set.
func TestFaults(t *testing.T) {
	f := func(fault Fault, messages int, want ...uint64) {
		t.Helper()
		p, c := publish(t, Config{Topic: "kv"})
		p.publishSome(1)
		if err := p.SetFault(fault, messages); err != nil {
			t.Fatal(err)
		}
		p.publishSome(6)
		if err := p.SetFault(NoFault, 0); err != nil {
			t.Fatal(err)
		}
		p.publishSome(1)
		var got []uint64
		for range want {
			m, err := c.Recv()
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, binary.BigEndian.Uint64(m[1]))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s of %d messages: read %d, want %d", fault, messages, got, want)
		}
	}
	f(NoFault, 0, 0, 1, 2, 3, 4, 5, 6, 7)
	f(Gap, 2, 0, 3, 4, 5, 6, 7)
	f(Gap, 0, 0, 7)
	f(Silence, 0, 0, 7)
	f(Duplicate, 2, 0, 1, 1, 2, 2, 3, 4, 5, 6, 7)
	f(Reorder, 1, 0, 2, 1, 3, 4, 5, 6, 7)
	f(Reorder, 0, 0, 2, 1, 4, 3, 6, 5, 7)
}

// TestCut: nobody can connect while the sockets are cut. Afterwards they are where they were, and a replay has all.
func TestCut(t *testing.T) {
	p, c := publish(t, Config{})
	before := p.Source()
	if err := p.SetFault(Cut, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Recv(); err == nil {
		t.Error("a message while all is cut")
	}
	if _, err := zmtp.Dial(context.Background(), before.Endpoint, zmtp.Config{Kind: zmtp.SUB}); err == nil {
		t.Error("connected while all is cut")
	}
	p.publishSome(3)
	if err := p.SetFault(NoFault, 0); err != nil {
		t.Fatal(err)
	}
	if after := p.Source(); after.Endpoint != before.Endpoint || *after.Replay != *before.Replay {
		t.Errorf("after the cut at %s and %s, before at %s and %s", after.Endpoint, *after.Replay, before.Endpoint, *before.Replay)
	}
	subscribe(t, p)
	if got := replay(t, p, 0); len(got) != 4 {
		t.Errorf("a replay of %d messages, want 3 and the end", len(got))
	}
}

// replay asks for a replay and returns its messages, the end included.
func replay(t *testing.T, p *Publisher, from uint64) (all [][][]byte) {
	t.Helper()
	c := dial(t, *p.Source().Replay, zmtp.Config{Kind: zmtp.DEALER})
	if err := c.Send(nil, sequence(from)); err != nil {
		t.Fatal(err)
	}
	for {
		m, err := c.Recv()
		if err != nil {
			t.Fatal(err)
		}
		for i := range m {
			m[i] = bytes.Clone(m[i]) // Recv uses it again
		}
		all = append(all, slices.Clone(m))
		if binary.BigEndian.Uint64(m[len(m)-2]) == math.MaxUint64 {
			return all
		}
	}
}

// TestReplayShapes: the answers have the frames that vLLM 0.32.0 and 0.19.1 were recorded to send, and reach back as far
// as the buffer.
func TestReplayShapes(t *testing.T) {
	for form, want := range map[Form]string{
		Map:   "[] [6b76] [0000000000000003] [P] | [] [6b76] [0000000000000004] [P] | [] [] [ffffffffffffffff] []",
		Array: "[] [0000000000000003] [P] | [] [0000000000000004] [P] | [] [ffffffffffffffff] []",
	} {
		p, _ := publish(t, Config{Form: form, Topic: "kv", Buffer: 2})
		p.publishSome(5)
		var got []string
		for _, m := range replay(t, p, 1) {
			var frames []string
			for _, f := range m {
				s := hex.EncodeToString(f)
				if len(f) > 8 {
					s = "P"
				}
				frames = append(frames, "["+s+"]")
			}
			got = append(got, strings.Join(frames, " "))
		}
		if s := strings.Join(got, " | "); s != want {
			t.Errorf("%s:\n got %s\nwant %s", form, s, want)
		}
		if got := replay(t, p, 5); len(got) != 1 {
			t.Errorf("%s: %d messages from beyond the newest, want the end alone", form, len(got))
		}
	}
}

// TestConnect: a publisher that dials finds a subscriber that listens, also one that comes later.
func TestConnect(t *testing.T) {
	ctx, end := context.WithCancel(context.Background())
	defer end()
	got := make(chan []byte, 10)
	hear := func(addr string) *zmtp.Listener {
		l, err := zmtp.Listen(ctx, addr, zmtp.Config{Kind: zmtp.SUB, Subscribe: []string{""}}, func(c *zmtp.Conn) {
			for {
				m, err := c.Recv()
				if err != nil {
					return
				}
				got <- m[0]
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	l := hear("tcp://" + porttest.Address(t))
	addr := l.Addr().String()
	p, err := New(Config{Endpoint: addr, Connect: true, Topic: "me"})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	for range 2 {
		for p.Subscribers() == 0 {
			time.Sleep(time.Millisecond)
		}
		p.publishSome(1)
		if topic := <-got; string(topic) != "me" {
			t.Errorf("topic %q", topic)
		}
		l.Close()
		for p.Subscribers() > 0 {
			time.Sleep(time.Millisecond)
		}
		l = hear(addr)
	}
}
