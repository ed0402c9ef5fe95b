package resp

import (
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/cache/parts/quota"
	"github.com/warmpath/warmpath/daemon/lab/waittest"
)

// TestSilentClientsGiveWay: clients that send nothing hold no place that another wants; one that has sent a command keeps
// its own.
func TestSilentClientsGiveWay(t *testing.T) {
	s, _ := serve(t, Config{MaxConns: 3})
	known := dial(t, s)
	if got := ask(t, known, cmd("PING")); got != "+PONG\r\n" {
		t.Fatalf("got %q", got)
	}
	var silent []net.Conn
	for range 8 {
		silent = append(silent, dial(t, s))
	}
	waittest.Until(t, "the first have given way", func() bool { return s.Stats().Refused == 6 })
	for _, c := range []net.Conn{known, silent[7], silent[6]} {
		if got := ask(t, c, cmd("PING")); got != "+PONG\r\n" {
			t.Errorf("a client with a place gets %q", got)
		}
	}
	if got, _ := io.ReadAll(dial(t, s)); string(got) != "-ERR max number of clients reached\r\n" {
		t.Errorf("one beyond three known ones gets %q", got)
	}
}

// TestIntroduction: where a password is set a client has 10 s to give it, whatever else it sends; after that it may be
// silent.
func TestIntroduction(t *testing.T) {
	if testing.Short() {
		t.Skip("takes 11 s")
	}
	s, _ := serve(t, Config{Password: "secret"})
	known, silent, talker := dial(t, s), dial(t, s), dial(t, s)
	if got := ask(t, known, cmd("AUTH", "secret")); got != "+OK\r\n" {
		t.Fatalf("got %q", got)
	}
	start := time.Now()
	go func() {
		for range 30 {
			_, _ = io.WriteString(talker, cmd("GET", "k"))
			time.Sleep(500 * time.Millisecond)
		}
	}()
	for _, c := range []net.Conn{silent, talker} {
		_ = c.SetReadDeadline(time.Now().Add(introduction + 5*time.Second))
		if _, err := io.Copy(io.Discard, c); os.IsTimeout(err) {
			t.Error("a client without the password is still there")
		}
	}
	if took := time.Since(start); took < introduction-time.Second || took > introduction+2*time.Second {
		t.Errorf("they were closed after %s; want %s", took, introduction)
	}
	_ = known.SetDeadline(time.Now().Add(5 * time.Second))
	if got := ask(t, known, cmd("PING")); got != "+PONG\r\n" {
		t.Errorf("a client that was silent after AUTH gets %q", got)
	}
}

// TestCommandsShareABound: the arguments of all clients together are bounded, and what the last command took is given
// back.
func TestCommandsShareABound(t *testing.T) {
	s, _ := serve(t, Config{})
	s.mu.Lock()
	s.held = quota.New(4 << 20)
	s.mu.Unlock()
	hog := dial(t, s)
	_, _ = io.WriteString(hog, "*2\r\n$4\r\nPING\r\n$8000000\r\n"+strings.Repeat("x", 3<<20))
	waittest.Until(t, "it is counted", func() bool { return s.held.Held() > 2<<20 })
	other := dial(t, s)
	_, _ = io.WriteString(other, cmd("ECHO", strings.Repeat("x", 3<<20)))
	if got, _ := io.ReadAll(other); !strings.Contains(string(got), "together are too long") {
		t.Errorf("a second long command gets %.100q", got)
	}
	if got := ask(t, dial(t, s), cmd("PING")); got != "+PONG\r\n" {
		t.Errorf("a short one beside gets %q", got)
	}
	hog.Close()
	waittest.Until(t, "all is given back", func() bool { return s.held.Held() == 0 })
}
