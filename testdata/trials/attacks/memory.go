package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/warmpath/warmpath/testdata/rig"
	"github.com/warmpath/warmpath/testdata/rig/wire"
)

// attackMemory tries to have the daemon keep what clients make up, or to write it out again.
func attackMemory(l *lab) error {
	if err := attackNames(l); err != nil {
		return err
	}
	w, err := l.echoes("sim")
	if err != nil {
		return err
	}
	d, err := l.serve(rig.Router{Workers: []string{w.addr}, Strategies: "[sessions]\nbind = \"always\"\n"})
	if err != nil {
		return err
	}
	l.way("deep-bodies", func() (bool, string) { return deepBodies(d) })
	l.way("operators-pages", func() (bool, string) { return operatorFlood(d) })
	l.way("made-up-sessions", func() (bool, string) {
		const n = 6000
		was := d.RSS()
		many(d.Addr, n, func(i int) []byte {
			return wire.Request("POST", chatPath, chat("sim"), jsonType,
				fmt.Sprintf("X-Session-Id: %s%d", strings.Repeat("s", 1000), i),
				fmt.Sprintf("X-Session-Affinity: %s%d", strings.Repeat("s", 12_000), i))
		})
		return grown(d, was, 48<<20, fmt.Sprintf("%d session names of 1 KB, and as many of 12 KB", n))
	})
	l.way("made-up-salts", func() (bool, string) {
		const n = 300
		was := d.RSS()
		many(d.Addr, n, func(i int) []byte {
			return wire.Request("POST", chatPath, fmt.Sprintf(`{"model":"sim","cache_salt":"%s%d","messages":[{"role":"user",`+
				`"content":"x"}]}`, strings.Repeat("s", 256<<10), i), jsonType)
		})
		return grown(d, was, 64<<20, fmt.Sprintf("%d salts of 256 KB", n))
	})
	l.way("made-up-paths", func() (bool, string) {
		const n = 2000
		was := d.RSS()
		many(d.Addr, n, func(i int) []byte {
			return wire.Request("POST", fmt.Sprintf("/v1/%s%d", strings.Repeat("p", 8000), i), chat("sim"), jsonType)
		})
		return grown(d, was, 32<<20, fmt.Sprintf("%d paths of 8 KB", n))
	})
	l.way("claimed-bodies", func() (bool, string) { return claimed(d) })
	l.way("idle-connections", func() (bool, string) { return idle(d, 2000) })
	return nil
}

// attackNames sends names of a megabyte where a model's name belongs. The worker's models are not known, as before
// its first answer: so every name goes on to it.
func attackNames(l *lab) error {
	if !l.wants("made-up-models", "log-of-long-names", "echo-of-long-names") {
		return nil
	}
	unknown, err := l.raws(func(c *wire.Call) bool { return c.Answer() })
	if err != nil {
		return err
	}
	handle := unknown.Handle
	unknown.Handle = func(c *wire.Call) bool {
		if c.Path == "/v1/models" {
			return c.Plain(404, "text/plain", "")
		}
		return handle(c)
	}
	log := filepath.Join(l.dir, "access.log")
	d, err := l.serve(rig.Router{Server: fmt.Sprintf("access_log = %q\n", log), Workers: []string{unknown.Addr()}})
	if err != nil {
		return err
	}
	l.way("made-up-models", func() (bool, string) {
		was := d.RSS()
		many(d.Addr, 300, func(i int) []byte {
			return wire.Request("POST", chatPath, chat(fmt.Sprintf("%d%s", i, strings.Repeat("m", 1<<20))), jsonType)
		})
		return grown(d, was, 100<<20, "300 models' names of 1 MB")
	})
	l.way("log-of-long-names", func() (bool, string) {
		many(d.Addr, 3, func(int) []byte {
			return wire.Request("POST", chatPath, `{"model":"`+strings.Repeat(`\u0001`, 1_000_000)+`","messages":[]}`, jsonType)
		})
		time.Sleep(200 * time.Millisecond) // the log is written behind
		b, err := os.ReadFile(log)
		longest, lines := 0, 0
		for line := range strings.SplitSeq(string(b), "\n") {
			longest, lines = max(longest, len(line)), lines+1
		}
		return err == nil && lines > 3 && longest < 4096, fmt.Sprintf("the longest of %d lines has %d bytes", lines, longest)
	})
	w, err := l.echoes("sim")
	if err != nil {
		return err
	}
	known, err := l.serve(rig.Router{Workers: []string{w.addr}})
	if err != nil {
		return err
	}
	l.way("echo-of-long-names", func() (bool, string) {
		a := wire.Once(known.Addr, wire.Request("POST", chatPath, chat(strings.Repeat("m", 4<<20)), jsonType))
		return a.Status == 404 && len(a.Body) < 4096, fmt.Sprintf("a name of 4 MB: %d of %d bytes", a.Status, len(a.Body))
	})
	return nil
}

// many sends n requests over a few connections.
func many(addr string, n int, make func(i int) []byte) {
	var all sync.WaitGroup
	for k := range 4 {
		all.Go(func() {
			c := wire.Client{Addr: addr}
			defer c.Close()
			for i := k; i < n; i += 4 {
				c.Do(make(i), false)
			}
		})
	}
	all.Wait()
}

// grown tells what the daemon has kept of an attack: its memory once more, when garbage was given back.
func grown(d *rig.Proc, was, limit int64, what string) (bool, string) {
	most := d.RSS()
	// Four bodies at a time are garbage for a while: what counts is what stays, or is far above that at once.
	rig.Eventually(10*time.Second, func() bool { return d.RSS()-was < limit })
	left := d.RSS()
	return left-was < limit && most-was < 4*limit, fmt.Sprintf("%s: memory %s -> %s, %s left", what, mb(was), mb(most),
		mb(left))
}

// deepBodies sends JSON that is a million deep, or a quarter of a million messages long. What buffers and the index
// take for the first of them, they do not take again for the next.
func deepBodies(d *rig.Proc) (bool, string) {
	long := strings.Repeat(`{"role":"user","content":"x"},`, 250_000) + `{"role":"user","content":"x"}`
	send := func() {
		for _, inner := range []string{
			strings.Repeat("[", 1<<20) + strings.Repeat("]", 1<<20),
			strings.Repeat(`{"content":`, 200_000) + "1" + strings.Repeat("}", 200_000), long,
		} {
			many(d.Addr, 4, func(int) []byte {
				return wire.Request("POST", chatPath, `{"model":"sim","messages":[`+inner+`]}`, jsonType)
			})
		}
	}
	was, used := d.RSS(), d.CPU()
	send()
	send()
	once := d.RSS()
	send()
	send()
	twice, cpu := d.RSS(), d.CPU()-used
	return answers(d.Addr) && twice-once < 64<<20 && twice-was < 512<<20 && cpu < 5*time.Second,
		fmt.Sprintf("48 bodies of 2 to 8 MB, %.2f s of CPU: memory %s -> %s after half of them -> %s", cpu.Seconds(),
			mb(was), mb(once), mb(twice))
}

// claimed opens requests that promise bodies of 60 MB and send a byte of each.
func claimed(d *rig.Proc) (bool, string) {
	was := d.RSS()
	var open []*wire.Conn
	for range 100 {
		if c, err := wire.Dial(d.Addr); err == nil {
			defer c.Close()
			fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: r\r\nContent-Length: 60000000\r\n\r\n{", chatPath)
			open = append(open, c)
		}
	}
	time.Sleep(500 * time.Millisecond)
	most := d.RSS()
	served := answers(d.Addr)
	return most-was < 64<<20 && served && len(open) == 100, fmt.Sprintf("%d bodies of 60 MB promised: memory %s -> "+
		"%s, served beside %v", len(open), mb(was), mb(most), served)
}

// idle opens connections that say nothing.
func idle(d *rig.Proc, n int) (bool, string) {
	was := d.RSS()
	opened := 0
	for range n {
		if c, err := wire.Dial(d.Addr); err == nil {
			defer c.Close()
			opened++
		}
	}
	time.Sleep(300 * time.Millisecond)
	each := float64(d.RSS()-was) / float64(max(1, opened)) / 1024
	served := answers(d.Addr)
	return each < 16 && served && opened == n, fmt.Sprintf("%d idle connections: %.1f KB each, served beside %v", opened,
		each, served)
}

// operatorFlood asks for the operator's pages 64 at a time. Clients are served meanwhile.
func operatorFlood(d *rig.Proc) (bool, string) {
	was := d.RSS()
	stop := time.Now().Add(2 * time.Second)
	var all sync.WaitGroup
	var mu sync.Mutex // guards pages
	pages := 0
	for i := range 64 {
		all.Go(func() {
			c := wire.Client{Addr: d.Admin}
			defer c.Close()
			path := []string{"/api/v1/pools", "/api/v1/sessions", "/metrics",
				"/api/v1/pools/" + strings.Repeat("x", 8000) + "/workers/y"}[i%4]
			for time.Now().Before(stop) {
				if a := c.Do(wire.Request("GET", path, "", "Host: "+d.Admin), false); a.Err == nil {
					mu.Lock()
					pages++
					mu.Unlock()
				}
			}
		})
	}
	failed, served := 0, 0
	for time.Now().Before(stop) {
		if answers(d.Addr) {
			served++
		} else {
			failed++
		}
	}
	all.Wait()
	ok, seen := grown(d, was, 64<<20, fmt.Sprintf("%d pages in 2 s, %d clients served beside, %d failed", pages, served,
		failed))
	return ok && failed == 0 && served > 0 && pages > 0, seen
}
