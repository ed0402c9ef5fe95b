package bugs

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/certtest"
	"github.com/warmpath/warmpath/testdata/rig"
	"github.com/warmpath/warmpath/testdata/rig/wire"
	"github.com/warmpath/warmpath/testdata/trials/engine"
)

// Clients that say nothing take all places of the clients' port. A limit of 256 open files leaves it some hundred.
var strangers = []wallCase{
	{"silent-clients-give-their-places-to-others", crowd(false, "", rig.Router{Files: 256})},
	{"half-heads-give-their-places-to-others", crowd(false, "POST /v1/chat/comp", rig.Router{Files: 256})},
	{"half-bodies-give-their-places-to-others", crowd(false, halfBody, rig.Router{Files: 256})},
	{"half-bodies-give-their-turns-to-others", crowd(false, halfBody, rig.Router{Server: "max_in_flight = 100\n"})},
	{"idle-clients-give-their-places-to-others", crowd(false, "GET /health HTTP/1.1\r\nHost: a\r\n\r\n",
		rig.Router{Files: 256})},
	{"half-handshakes-give-their-places-to-others", crowd(true, "\x16\x03\x01\x02\x00\x01", rig.Router{Files: 256})},
	{"silent-clients-of-tls-give-their-places-to-others", crowd(true, "", rig.Router{Files: 256})},
	{"a-slow-head-is-awaited-while-there-is-room", slowHead},
}

const halfBody = "POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 999\r\n\r\n{"

// crowd opens 400 connections that send so much, and looks when a client is served again.
func crowd(secure bool, text string, conf rig.Router) func(*lab) (string, bool) {
	return func(l *lab) (string, bool) {
		if secure {
			pair := certtest.New(l.t, l.dir, "front", "router")
			conf.Server += fmt.Sprintf("tls_cert_file = %q\ntls_key_file = %q\n", pair.Cert, pair.Key)
			conf.TLS = true
		}
		r := l.routerWith(conf, l.engines(1, engine.Echo)...)
		for range 400 {
			c, err := net.DialTimeout("tcp", r.Addr, 5*time.Second)
			if err == nil {
				l.t.Cleanup(func() { c.Close() })
				_, _ = io.WriteString(c, text)
			}
		}
		began := time.Now()
		again := rig.Eventually(60*time.Second, func() bool { return asked(r.Addr, secure) })
		took := time.Since(began)
		return fmt.Sprintf("served again: %v, after %.0f s", again, took.Seconds()), again && took < 15*time.Second
	}
}

// asked tells whether a chat is answered with 200 within 2 s.
func asked(addr string, secure bool) bool {
	c, err := net.DialTimeout("tcp", addr, 2*time.Second)
	if err != nil {
		return false
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(2 * time.Second))
	if secure {
		c = tls.Client(c, &tls.Config{InsecureSkipVerify: true})
	}
	_, _ = c.Write(wire.Request("POST", chatPath, chat("hi"), "Content-Type: application/json"))
	head := make([]byte, len("HTTP/1.1 200"))
	_, err = io.ReadFull(c, head)
	return err == nil && string(head) == "HTTP/1.1 200"
}

// slowHead sends a request with a pause of 8 s in its head, beside a crowd that leaves places.
func slowHead(l *lab) (string, bool) {
	r := l.routerWith(rig.Router{Files: 256}, l.engines(1, engine.Echo)...)
	for range 40 {
		c, err := net.DialTimeout("tcp", r.Addr, 5*time.Second)
		if err != nil {
			l.t.Fatal(err)
		}
		l.t.Cleanup(func() { c.Close() })
	}
	c, err := net.DialTimeout("tcp", r.Addr, 5*time.Second)
	if err != nil {
		l.t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	head, rest, _ := strings.Cut(string(wire.Request("POST", chatPath, chat("hi"), "Content-Type: application/json")), "Host")
	_, _ = io.WriteString(c, head)
	time.Sleep(8 * time.Second)
	_, _ = io.WriteString(c, "Host"+rest)
	answer := make([]byte, len("HTTP/1.1 200"))
	_, err = io.ReadFull(c, answer)
	return fmt.Sprintf("answered %s", answer), err == nil && string(answer) == "HTTP/1.1 200"
}
