package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/certtest"
	"github.com/warmpath/warmpath/testdata/rig"
	"github.com/warmpath/warmpath/testdata/rig/wire"
	"github.com/warmpath/warmpath/testdata/trials/faults/probes"
)

// attackSecure tries the clients' port when it speaks TLS: what holds in the clear must hold here, and handshakes are
// new.
func attackSecure(l *lab) error {
	if !l.wants("half-handshakes", "no-handshake", "framing", "half-header", "idle-connections", "descriptors") {
		return nil
	}
	w, err := l.echoes("sim")
	if err != nil {
		return err
	}
	pair, err := certtest.Write(l.dir, "front", "router")
	if err != nil {
		return err
	}
	server := fmt.Sprintf("tls_cert_file = %q\ntls_key_file = %q\nread_timeout = \"2s\"\n", pair.Cert, pair.Key)
	conf := rig.Router{Server: server, Workers: []string{w.addr}, TLS: true}
	d, err := l.serve(conf)
	if err != nil {
		return err
	}
	s := secure{addr: d.Addr, trusted: pair.Authority}
	l.way("half-handshakes", func() (bool, string) {
		was := d.RSS()
		ended, longest := s.half(500, "\x16\x03\x01\x02\x00\x01")
		ok, seen := grown(d, was, 32<<20, fmt.Sprintf("500 handshakes begun: %d ended by the router, the last after %.1f s",
			ended, longest.Seconds()))
		return ok && ended == 500 && longest < 10*time.Second && s.answers(), seen
	})
	l.way("no-handshake", func() (bool, string) {
		ended, longest := s.half(50, "GET / HTTP/1.1\r\nHost: r\r\n\r\n")
		garbage, last := s.half(50, strings.Repeat("\xff\x00", 8000))
		return ended == 50 && garbage == 50 && max(longest, last) < 10*time.Second && s.answers(),
			fmt.Sprintf("HTTP in the clear: %d of 50 ended, the last after %.1f s; garbage: %d of 50, %.1f s", ended,
				longest.Seconds(), garbage, last.Seconds())
	})
	l.way("framing", func() (bool, string) { return s.framing(w) })
	l.way("half-header", func() (bool, string) {
		began := time.Now()
		got := s.send("GET /v1/models HTTP/1.1\r\nHost: r\r\nX-A", 15*time.Second)
		took := time.Since(began)
		return took < 10*time.Second, fmt.Sprintf("half a header, read_timeout 2 s: ended after %.1f s with %.30q",
			took.Seconds(), got)
	})
	l.way("idle-connections", func() (bool, string) { return s.idle(d, 500) })
	l.way("descriptors", func() (bool, string) {
		conf.Files = 64
		d, err := l.serve(conf)
		if err != nil {
			return false, err.Error()
		}
		s := secure{addr: d.Addr, trusted: pair.Authority}
		ended, _ := s.half(100, "\x16")
		back := rig.Eventually(10*time.Second, s.answers)
		trouble := l.end(d)
		return back && trouble == "", fmt.Sprintf("100 handshakes begun at ulimit -n 64: %d ended by the router, served "+
			"after they left %v %s", ended, back, trouble)
	})
	return nil
}

// secure is a port that speaks TLS.
type secure struct {
	addr    string
	trusted *x509.CertPool
}

func (s secure) dial() (*tls.Conn, error) {
	c, err := net.DialTimeout("tcp", s.addr, 5*time.Second)
	if err != nil {
		return nil, err
	}
	t := tls.Client(c, &tls.Config{RootCAs: s.trusted, ServerName: "router"})
	t.SetDeadline(time.Now().Add(5 * time.Second))
	if err := t.Handshake(); err != nil {
		c.Close()
		return nil, err
	}
	t.SetDeadline(time.Time{})
	return t, nil
}

// framing sends what two parsers may read in two ways, all at once. 0 of it may come to a worker.
func (s secure) framing(w *echo) (bool, string) {
	w.asked()
	var all sync.WaitGroup
	var answered, heard atomic.Int64
	for _, p := range probes.Ambiguous {
		all.Go(func() {
			got := s.send(p.Raw, 2*time.Second)
			if strings.HasPrefix(got, "HTTP/1.1 2") {
				answered.Add(1)
			}
			if got != "" {
				heard.Add(1)
			}
		})
	}
	all.Wait()
	reached := len(w.asked())
	for _, p := range probes.Controls {
		s.send(p.Raw, 2*time.Second)
	}
	sound := len(w.asked())
	return reached == 0 && answered.Load() == 0 && sound == len(probes.Controls),
		fmt.Sprintf("%d ambiguous requests: %d refused in words, %d answered 2xx, %d reached a worker; %d of %d sound "+
			"ones did",
			len(probes.Ambiguous), heard.Load(), answered.Load(), reached, sound, len(probes.Controls))
}

// send is probes.Send over TLS.
func (s secure) send(raw string, wait time.Duration) string {
	c, err := s.dial()
	if err != nil {
		return ""
	}
	return probes.Exchange(c, raw, wait)
}

func (s secure) answers() bool {
	ask := wire.Request("POST", chatPath, chat("sim"), jsonType, "Connection: close")
	return strings.HasPrefix(s.send(string(ask), 5*time.Second), "HTTP/1.1 200")
}

// half opens connections in the clear, sends start on each, and returns how many of them the router ended and when the
// last of those was.
func (s secure) half(n int, start string) (ended int, longest time.Duration) {
	var all sync.WaitGroup
	var mu sync.Mutex // guards ended, longest
	for range n {
		all.Go(func() {
			c, err := net.DialTimeout("tcp", s.addr, 5*time.Second)
			if err != nil {
				return
			}
			defer c.Close()
			began := time.Now()
			c.Write([]byte(start))
			c.SetReadDeadline(began.Add(12 * time.Second))
			buf := make([]byte, 512)
			for err == nil {
				_, err = c.Read(buf)
			}
			mu.Lock()
			defer mu.Unlock()
			if t, ok := err.(net.Error); !ok || !t.Timeout() {
				ended++
				longest = max(longest, time.Since(began))
			}
		})
	}
	all.Wait()
	return ended, longest
}

// idle opens connections that say nothing after their handshake.
func (s secure) idle(d *rig.Proc, n int) (bool, string) {
	was := d.RSS()
	opened := 0
	for range n {
		if c, err := s.dial(); err == nil {
			defer c.Close()
			opened++
		}
	}
	each := float64(d.RSS()-was) / float64(max(1, opened)) / 1024
	served := s.answers()
	return each < 64 && served && opened == n, fmt.Sprintf("%d idle connections: %.1f KB each, served beside %v", opened,
		each, served)
}
