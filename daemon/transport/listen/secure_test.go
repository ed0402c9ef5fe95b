package listen

import (
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/certtest"
	"github.com/warmpath/warmpath/daemon/lab/logtest"
	"github.com/warmpath/warmpath/daemon/lab/waittest"
	"github.com/warmpath/warmpath/daemon/transport/certificate"
)

// insecure is for a client's end of a loopback pair.
var insecure = &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2", "http/1.1"}}

// withTLS is a Config whose certificate bears the name "first".
func withTLS(t testing.TB) Config {
	pair := certtest.New(t, t.TempDir(), "door", "first")
	held, err := certificate.Load(certificate.Config{CertFile: pair.Cert, KeyFile: pair.Key,
		Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return Config{Certificate: held}
}

// securePair is a TLS connection after its handshake.
func securePair(t testing.TB, l *Listener) (*tls.Conn, *secureLease) {
	t.Helper()
	raw, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	shaken := make(chan error, 1)
	go func() { shaken <- c.(*secureLease).Handshake() }()
	client := tls.Client(raw, insecure)
	if err := client.Handshake(); err != nil {
		t.Fatal(err)
	}
	if err := <-shaken; err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close(); c.Close() })
	return client, c.(*secureLease)
}

func TestTLS(t *testing.T) {
	l := open(t, withTLS(t), nil)
	client, c := securePair(t, l)
	server := From(c)
	if !server.IsTLS() || c.ConnectionState().NegotiatedProtocol != "http/1.1" {
		t.Errorf("TLS %v, protocol %q", server.IsTLS(), c.ConnectionState().NegotiatedProtocol)
	}
	go io.WriteString(client, "ping")
	b := make([]byte, 4)
	if _, err := io.ReadFull(c, b); err != nil || string(b) != "ping" {
		t.Fatalf("read %q, %v", b, err)
	}
	if _, err := c.Write([]byte("pong")); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(client, b); err != nil || string(b) != "pong" {
		t.Fatalf("the client read %q, %v", b, err)
	}
	if runtime.GOOS == "linux" { // see peek
		var g counter
		server.Watch(&g)
		client.Close()
		waittest.Until(t, "a TLS client's leaving is noticed", g.called)
	}
	_, plain := pair(t, open(t, Config{}, nil))
	if plain.IsTLS() {
		t.Error("a plain connection says it is TLS")
	}
	if _, ok := net.Conn(plain).(interface{ Handshake() error }); ok {
		t.Error("fasthttp would take a plain connection for TLS")
	}
}

func TestTLSStalledReader(t *testing.T) {
	conf := withTLS(t)
	conf.WriteTimeout = time.Second // the handshake too must get through on a busy machine
	l := open(t, conf, nil)
	_, c := securePair(t, l)
	failed := make(chan error, 1)
	go func() {
		for b := make([]byte, 1<<20); ; {
			if _, err := c.Write(b); err != nil {
				failed <- err
				return
			}
		}
	}()
	select {
	case <-failed:
	case <-time.After(patience):
		t.Fatal("a write to a client that does not read was not given up")
	}
	waittest.Until(t, "the connection is closed and counted", func() bool {
		return l.Stats().SlowClosed == 1 && l.Stats().Open == 0
	})
}

// TestSlowHandshake: one client stops in the middle of its handshake, others are served.
func TestSlowHandshake(t *testing.T) {
	l := open(t, withTLS(t), nil)
	slow, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer slow.Close()
	slow.Write([]byte{0x16, 3, 1, 2, 0}) // a record's head, and no more
	stuck, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer stuck.Close()
	stuck.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
	dropped := make(chan error, 1)
	go func() { dropped <- stuck.(*secureLease).Handshake() }()

	client, c := securePair(t, l)
	go io.WriteString(client, "x")
	if _, err := c.Read(make([]byte, 1)); err != nil {
		t.Errorf("a client beside a slow one: %v", err)
	}
	if err := <-dropped; err == nil || !strings.Contains(err.Error(), "timeout") {
		t.Errorf("half a handshake = %v, want the read deadline", err)
	}
}

// TestUntrusted: one line tells that clients refuse the certificate, however many do, and none that one has left.
func TestUntrusted(t *testing.T) {
	conf := withTLS(t)
	var log logtest.Log
	conf.Log = textLog(&log)
	l := open(t, conf, nil)
	for i, trusting := range []*tls.Config{nil, {ServerName: "localhost"}, {ServerName: "localhost"}} {
		raw, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		c, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		shaken := make(chan error, 1)
		go func() { shaken <- c.(*secureLease).Handshake() }()
		if trusting != nil {
			_ = tls.Client(raw, trusting).Handshake()
		}
		raw.Close()
		if err := <-shaken; err == nil {
			t.Error("the handshake succeeded")
		}
		c.Close()
		if got := strings.Count(log.String(), "refuses the TLS certificate"); got != min(i, 1) {
			t.Errorf("client %d: %d lines:\n%s", i, got, log.String())
		}
	}
}
