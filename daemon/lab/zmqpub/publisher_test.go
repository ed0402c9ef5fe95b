package zmqpub

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/warmpath/warmpath/cache/zmtp"
	"github.com/warmpath/warmpath/daemon/lab/waittest"
)

func dial(t *testing.T, addr string, c zmtp.Config) *zmtp.Conn {
	t.Helper()
	conn, err := zmtp.Dial(t.Context(), addr, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

func TestPublish(t *testing.T) {
	p := New(zmtp.Config{}, 10_000)
	l, err := p.Listen(t.Context(), "tcp://127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	kv := dial(t, l.Addr().String(), zmtp.Config{Kind: zmtp.SUB, Subscribe: []string{"kv@"}})
	all := dial(t, l.Addr().String(), zmtp.Config{Kind: zmtp.SUB, Subscribe: []string{""}})
	waittest.Until(t, "subscribers come and go", func() bool { return p.Subscribers("kv@a") == 2 })
	p.Publish([]byte("other"), []byte("1"))
	p.Publish([]byte("kv@a"), []byte("2"))
	for _, c := range []struct {
		conn *zmtp.Conn
		want string
	}{{kv, "kv@a2"}, {all, "other1"}, {all, "kv@a2"}} {
		m, err := c.conn.Recv()
		if err != nil || string(bytes.Join(m, nil)) != c.want {
			t.Errorf("got %q, %v; want %q", m, err, c.want)
		}
	}
	_ = all.Send([]byte{0})
	waittest.Until(t, "subscribers come and go", func() bool { return p.Subscribers("other") == 0 })
	all.SendCommand("SUBSCRIBE", []byte("oth"))
	waittest.Until(t, "subscribers come and go", func() bool { return p.Subscribers("other") == 1 })
	all.SendCommand("CANCEL", []byte("oth"))
	waittest.Until(t, "subscribers come and go", func() bool { return p.Subscribers("other") == 0 })
	for i := range maxTopics + 1 {
		_ = kv.Send(fmt.Appendf([]byte{1}, "topic-%d", i))
	}
	waittest.Until(t, "subscribers come and go", func() bool { return p.Subscribers("kv@") == 0 }) // over the limit: gone
}

func TestSlowSubscriberMisses(t *testing.T) {
	p := New(zmtp.Config{}, 4)
	l, err := p.Listen(t.Context(), "tcp://127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	slow := dial(t, l.Addr().String(), zmtp.Config{Kind: zmtp.SUB, Subscribe: []string{""}})
	waittest.Until(t, "subscribers come and go", func() bool { return p.Subscribers("") == 1 })
	body := make([]byte, 1<<20)
	for end := time.Now().Add(10 * time.Second); p.Dropped() == 0 && time.Now().Before(end); {
		p.Publish(nil, body)
	}
	if p.Dropped() == 0 {
		t.Error("nothing was dropped for a subscriber that does not read")
	}
	if _, err := slow.Recv(); err != nil {
		t.Error("what was queued is lost:", err)
	}
}

// A SUB that listens receives from publishers that connect.
func TestPublisherThatConnects(t *testing.T) {
	got := make(chan string, 1)
	l, err := zmtp.Listen(t.Context(), "tcp://127.0.0.1:0", zmtp.Config{Kind: zmtp.SUB, Subscribe: []string{""}}, func(c *zmtp.Conn) {
		if m, err := c.Recv(); err == nil {
			got <- string(m[0])
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	p := New(zmtp.Config{}, 10_000)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { p.Connect(ctx, l.Addr().String()); close(done) }()
	waittest.Until(t, "subscribers come and go", func() bool { return p.Subscribers("a") == 1 })
	p.Publish([]byte("a"))
	if m := <-got; m != "a" {
		t.Errorf("got %q", m)
	}
	cancel()
	<-done
}
