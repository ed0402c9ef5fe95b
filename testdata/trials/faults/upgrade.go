package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/warmpath/warmpath/testdata/rig"
)

// ownBinary copies the daemon's binary to where a check may replace it.
func (l *lab) ownBinary() (path string, err error) {
	dir, err := os.MkdirTemp(l.dir, "bin")
	if err != nil {
		return "", err
	}
	path = filepath.Join(dir, "warmpath")
	return path, install(l.bin, path)
}

// install copies a program into another's place in one step, as a package manager does.
func install(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if err = errors.Join(err, out.Close()); err != nil {
		return err
	}
	return os.Rename(to+".new", to)
}

var upgraded = regexp.MustCompile(`upgraded: process (\d+)`)

// upgrade runs the command. It returns the pid that serves now; 0 = it was refused.
func (l *lab) upgrade(r *router) (pid int, text string) {
	out, err := exec.Command(l.bin, "upgrade", "--admin", r.Admin).CombinedOutput()
	if m := upgraded.FindSubmatch(out); m != nil && err == nil {
		pid, _ = strconv.Atoi(string(m[1]))
	}
	return pid, string(out)
}

// load is the result of streams and requests.
type load struct {
	whole, cut, sent, failed int64
	why                      []string // they were cut
}

// streamsAndRequests keeps so many streams open, each on a connection of its own, and sends so many requests a second,
// until stop, which returns what came of them.
func streamsAndRequests(l *lab, addr string, streams int, rate float64) (stop func() load) {
	var whole, cut atomic.Int64
	var mu sync.Mutex
	var why []string
	quit := make(chan struct{})
	var all sync.WaitGroup
	for range streams {
		all.Go(func() {
			for {
				select {
				case <-quit:
					return
				default:
				}
				mark := newMark()
				if s := watch(addr, streaming(mark, 60, 50*time.Millisecond, ""), mark, nil); s.fine() {
					whole.Add(1)
				} else {
					cut.Add(1)
					mu.Lock()
					why = append(why, s.String())
					mu.Unlock()
				}
			}
		})
	}
	end := steady(l, addr, rate, "&hold=20")
	return func() load {
		close(quit)
		sent, failed := end()
		all.Wait()
		return load{whole: whole.Load(), cut: cut.Load(), sent: sent, failed: failed, why: why}
	}
}

// checkUpgrade replaces the binary under load. With every second one that works comes one that ends at once.
func checkUpgrade(l *lab) (verdict, error) {
	nodes, err := l.startNodes(4)
	if err != nil {
		return verdict{}, err
	}
	own, err := l.ownBinary()
	if err != nil {
		return verdict{}, err
	}
	built := l.bin
	l.bin = own
	r, err := l.serve(rig.Router{Pool: poolKeys, Workers: addrs(nodes)})
	l.bin = built
	if err != nil {
		return verdict{}, err
	}
	l.exits = true
	crash := filepath.Join(l.dir, "crash")
	if err := os.WriteFile(crash, []byte("#!/bin/sh\nexit 3\n"), 0o755); err != nil {
		return verdict{}, err
	}
	defer func() {
		if last, err := os.FindProcess(l.successor); err == nil && l.successor > 0 {
			_ = last.Kill()
		}
	}()
	stop := streamsAndRequests(l, r.Addr, pick(l, 50, 200), pick(l, 100., 300.))
	replaced, refused := 0, 0
	times := pick(l, 3, 10)
	for n := range 2 * times {
		file := built
		if n%2 == 1 {
			file = crash
		}
		time.Sleep(pick(l, 500*time.Millisecond, time.Second))
		if err := install(file, own); err != nil {
			return verdict{}, err
		}
		switch pid, text := l.upgrade(r); {
		case pid > 0 && n%2 == 0:
			replaced++
			l.successor = pid
		case pid == 0 && n%2 == 1 && regexp.MustCompile(`ended \(exit status 3\)`).MatchString(text):
			refused++
		default:
			fmt.Fprintf(os.Stderr, "faults: upgrade %d: %s", n, text)
		}
	}
	time.Sleep(time.Second)
	c := stop()
	return say(c.cut == 0 && c.failed == 0 && c.whole > 0 && replaced == times && refused == times,
		"replaced %d of %d times, %d of %d that crash refused; %d streams whole, %d cut; %d of %d requests failed %s",
		replaced, times, refused, times, c.whole, c.cut, c.failed, c.sent, some(c.why))
}
