package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/warmpath/warmpath/cache/zmtp"
	"github.com/warmpath/warmpath/testdata/rig"
	"github.com/warmpath/warmpath/testdata/rig/wire"
)

// ports are the listeners for workers, each by the address that it has in one daemon.
type ports struct {
	pull, reply, heartbeat, coordinator, events, redis, hyperpod string
}

// freeAddress returns an address on loopback that nobody has.
func freeAddress() string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "127.0.0.1:1"
	}
	defer l.Close()
	return l.Addr().String()
}

// withPorts starts a daemon with all listeners for workers, everything else by its defaults.
func (l *lab) withPorts() (*rig.Proc, ports, error) {
	p := ports{pull: freeAddress(), reply: freeAddress(), heartbeat: freeAddress(), coordinator: freeAddress(),
		events: freeAddress(), redis: freeAddress(), hyperpod: freeAddress()}
	w, err := l.echoes("sim")
	if err != nil {
		return nil, p, err
	}
	tables := fmt.Sprintf("[lmcache]\npull = %q\nreply = %q\nheartbeat = %q\ncoordinator = %q\n[kv_cache]\nresp = %q\n"+
		"hyperpod = %q\nsegment = \"warmpath-attacks-%d\"\nmax_bytes = 67108864\n", p.pull, p.reply, p.heartbeat,
		p.coordinator, p.redis, p.hyperpod, os.Getpid())
	d, err := l.serve(rig.Router{Server: fmt.Sprintf("kv_events_listen = \"tcp://%s\"\n", p.events),
		Pool: "strategy = \"kvaware\"\n", Workers: []string{w.addr}, Strategies: tables})
	return d, p, err
}

// doorMemory is what one port may take over an idle daemon: the bodies that one client may have held (96 MiB), what
// they left behind as they grew until Go collects it, and 64 KiB for each of 2,000 connections.
const doorMemory = 320 << 20

// attackPorts sends to each listener what costs most: those for workers have no password unless one is set, and clients
// may break off their bodies.
func attackPorts(l *lab) error {
	for _, w := range []struct {
		name string
		send func(*rig.Proc, ports) (what string)
	}{
		{"lmcache-events", func(_ *rig.Proc, p ports) string {
			return posts(p.coordinator, "/events", list(`{"batches":[{"instance_id":"a","incarnation":1,"seq":1,`+
				`"event_type":"store","tier":"l1","entries":[`, "{}", "]}]}", 20<<20))
		}},
		{"lmcache-lookup", func(_ *rig.Proc, p ports) string {
			return posts(p.coordinator, "/directory/lookup", list(`{"keys":[`, "{}", "]}", 7<<20))
		}},
		{"lmcache-tokens", func(_ *rig.Proc, p ports) string {
			return posts(p.coordinator, "/directory/lookup", list(`{"world_size":64,"token_ids":[`, "1", "]}", 7<<20))
		}},
		{"lmcache-json", func(_ *rig.Proc, p ports) string {
			return peers(p.pull, zmtp.PUSH, 8, whole([]byte(`{"operations":[`+strings.Repeat("{},", 2_500_000)+"{}]}")))
		}},
		{"lmcache-half", func(_ *rig.Proc, p ports) string { return peers(p.pull, zmtp.PUSH, 60, halves(8<<20)) }},
		{"lmcache-many", func(_ *rig.Proc, p ports) string { return peers(p.pull, zmtp.PUSH, 4000, halves(16<<10)) }},
		{"kv-events-half", func(_ *rig.Proc, p ports) string { return peers(p.events, zmtp.PUB, 60, halves(16<<20)) }},
		{"kv-events-many", func(_ *rig.Proc, p ports) string { return peers(p.events, zmtp.PUB, 1000, halves(64<<10)) }},
		{"redis-half", func(_ *rig.Proc, p ports) string {
			return raws(p.redis, 60, append([]byte("*2\r\n$4\r\nPING\r\n$8000000\r\n"), make([]byte, 7<<20)...))
		}},
		{"redis-many", func(_ *rig.Proc, p ports) string {
			return raws(p.redis, 2000, append([]byte("*2\r\n$4\r\nPING\r\n$60000\r\n"), make([]byte, 59_000)...))
		}},
		{"redis-words", func(_ *rig.Proc, p ports) string {
			return raws(p.redis, 2000, []byte("EXISTS"+strings.Repeat(" a", 32_000)+"\r\n"))
		}},
		{"clients-half", func(d *rig.Proc, _ ports) string { return raws(d.Addr, 60, halfChat(7<<20)) }},
		{"clients-many", func(d *rig.Proc, _ ports) string { return raws(d.Addr, 2000, halfChat(250<<10)) }},
		{"hyperpod-many", func(_ *rig.Proc, p ports) string {
			return raws(p.hyperpod, 2000, []byte("PUT /v1/kv/b/k HTTP/1.1\r\nX: "+strings.Repeat("x", 31_000)))
		}},
	} {
		if !l.wants(w.name) {
			continue
		}
		d, p, err := l.withPorts()
		if err != nil {
			return err
		}
		l.way(w.name, func() (bool, string) { return doorCost(d, func() string { return w.send(d, p) }) })
		if trouble := l.end(d); trouble != "" {
			return fmt.Errorf("%s: %s", w.name, trouble)
		}
	}
	return attackStrangers(l)
}

// doorCost looks how much the daemon takes while try runs, and whether it serves beside.
func doorCost(d *rig.Proc, try func() string) (bool, string) {
	was, most := d.RSS(), int64(0)
	done := make(chan string)
	go func() { done <- try() }()
	for {
		select {
		case what := <-done:
			most = max(most, d.RSS())
			served := answers(d.Addr)
			return most-was <= doorMemory && served, fmt.Sprintf("%s: memory %s -> %s, %s more; served beside %v", what, mb(was),
				mb(most), mb(most-was), served)
		case <-time.After(20 * time.Millisecond):
			most = max(most, d.RSS())
			if most-was > 3<<30 {
				d.Stop() // the machine has others on it
			}
		}
	}
}

// halfChat is a chat of which so many bytes come.
func halfChat(size int) []byte {
	return []byte("POST " + chatPath + " HTTP/1.1\r\nHost: r\r\n" + jsonType + "\r\nContent-Length: 8000000\r\n\r\n" +
		`{"model":"sim","messages":[{"role":"user","content":"` + strings.Repeat("x", size))
}

// list is a body of so many bytes: one thing again and again.
func list(before, one, after string, size int) string {
	return before + strings.Repeat(one+",", size/(len(one)+1)) + one + after
}

// posts sends a body three times, side by side.
func posts(addr, path, body string) string {
	statuses := make([]int, 3)
	var all sync.WaitGroup
	for i := range statuses {
		all.Go(func() { statuses[i] = wire.Once(addr, wire.Request("POST", path, body, jsonType)).Status })
	}
	all.Wait()
	return fmt.Sprintf("%d bodies of %s: %v", len(statuses), mb(int64(len(body))), statuses)
}

// whole is a message, halves one that ends before its last bytes.
func whole(message []byte) []byte {
	return append(binary.BigEndian.AppendUint64([]byte{2}, uint64(len(message))), message...)
}

func halves(size int) []byte {
	return append(binary.BigEndian.AppendUint64([]byte{2}, uint64(size)), make([]byte, size-1000)...)
}

// greeting is what a ZeroMQ peer of that kind sends first.
func greeting(kind zmtp.Kind) []byte {
	var g bytes.Buffer
	g.Write([]byte{0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0x7f, 3, 0})
	g.WriteString("NULL" + strings.Repeat("\x00", 16+32))
	ready := "\x05READY\x0bSocket-Type\x00\x00\x00" + string(rune(len(kind))) + string(kind)
	g.Write([]byte{4, byte(len(ready))})
	g.WriteString(ready)
	return g.Bytes()
}

func peers(addr string, kind zmtp.Kind, n int, message []byte) string {
	return raws(addr, n, append(greeting(kind), message...))
}

// raws opens n connections, sends the bytes on each, and holds all for some seconds.
func raws(addr string, n int, text []byte) string {
	var all sync.WaitGroup
	var mu sync.Mutex // guards open and sent
	var open []net.Conn
	sent := int64(0)
	room := make(chan struct{}, 100)
	for range n {
		room <- struct{}{}
		all.Go(func() {
			c, err := net.DialTimeout("tcp", addr, 5*time.Second)
			if err == nil {
				_ = c.SetDeadline(time.Now().Add(4 * time.Second))
				m, _ := c.Write(text)
				mu.Lock()
				open = append(open, c)
				sent += int64(m)
				mu.Unlock()
			}
			<-room
		})
	}
	all.Wait()
	time.Sleep(time.Second)
	for _, c := range open {
		c.Close()
	}
	return fmt.Sprintf("%d connections, %s sent", len(open), mb(sent))
}

// attackStrangers takes all places of each port with connections that say nothing, and looks when one that speaks is
// served.
func attackStrangers(l *lab) error {
	for _, w := range []struct {
		name  string
		many  int
		at    func(*rig.Proc, ports) string
		first []byte // what each stranger says all the same
		ask   []byte
		want  string // "" = a greeting of ZeroMQ
	}{
		{name: "silent-admin", many: 400, at: func(d *rig.Proc, _ ports) string { return d.Admin },
			ask: []byte("GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"), want: "HTTP/1.1 200"},
		{name: "silent-redis", many: 2100, at: func(_ *rig.Proc, p ports) string { return p.redis },
			ask: []byte("PING\r\n"), want: "+PONG"},
		{name: "silent-hyperpod", many: 2100, at: func(_ *rig.Proc, p ports) string { return p.hyperpod },
			ask:  []byte("POST /v1/leases/x/release HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n"),
			want: "HTTP/1.1 404"},
		{name: "silent-coordinator", many: 1100, at: func(_ *rig.Proc, p ports) string { return p.coordinator },
			ask: []byte("GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n"), want: "HTTP/1.1 200"},
		{name: "silent-lmcache", many: 4200, at: func(_ *rig.Proc, p ports) string { return p.reply },
			first: greeting(zmtp.DEALER)},
		{name: "silent-kv-events", many: 1100, at: func(_ *rig.Proc, p ports) string { return p.events },
			first: greeting(zmtp.PUB)},
	} {
		if !l.wants(w.name) {
			continue
		}
		d, p, err := l.withPorts()
		if err != nil {
			return err
		}
		l.way(w.name, func() (bool, string) { return strangers(w.at(d, p), w.many, w.first, w.ask, w.want) })
		if trouble := l.end(d); trouble != "" {
			return fmt.Errorf("%s: %s", w.name, trouble)
		}
	}
	return nil
}

// served tells whether a connection is let in: by its answer, or by a ZeroMQ greeting and the connection's staying.
func served(addr string, ask []byte, want string) bool {
	c, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return false
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(time.Second))
	if want == "" {
		_, err := c.Write(greeting(zmtp.DEALER))
		g := make([]byte, 64)
		_, again := io.ReadFull(c, g)
		return err == nil && again == nil && g[0] == 0xff
	}
	_, _ = c.Write(ask)
	b := make([]byte, len(want))
	_, err = io.ReadFull(c, b)
	return err == nil && string(b) == want
}

func strangers(addr string, many int, first, ask []byte, want string) (bool, string) {
	var open []net.Conn
	for range many {
		if c, err := net.DialTimeout("tcp", addr, time.Second); err == nil {
			_, _ = c.Write(first)
			open = append(open, c)
			defer c.Close()
		}
	}
	began, in := time.Now(), false
	for time.Since(began) < 40*time.Second && !in {
		in = served(addr, ask, want)
		if !in {
			time.Sleep(100 * time.Millisecond)
		}
	}
	took := time.Since(began)
	return in && took < 15*time.Second, fmt.Sprintf("%d silent connections: served %v after %.1f s", len(open), in,
		took.Seconds())
}
