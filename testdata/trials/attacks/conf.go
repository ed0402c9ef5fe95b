package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/warmpath/warmpath/testdata/rig"
	"github.com/warmpath/warmpath/testdata/rig/wire"
)

// bombs are small files that cost a parser much.
var bombs = map[string]string{
	"open-brackets":   "x=" + strings.Repeat("[", 200_000),
	"closed-brackets": "x=" + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000),
	"inline-tables":   "x=" + strings.Repeat("{a=", 20_000) + "1" + strings.Repeat("}", 20_000),
	"dotted-key":      strings.Repeat("a.", 20_000) + "a=1",
	"dotted-table":    "[" + strings.Repeat("a.", 20_000) + "a]",
	"spread-brackets": "x=" + strings.Repeat("[\n", 20_000),
	"many-tables":     strings.Repeat("[[pools]]\n", 20_000),
}

// attackConf tries files that somebody puts in place of the configuration: at a check, and below a running daemon.
func attackConf(l *lab) error {
	for name, text := range inOrder(bombs) {
		l.way("check-"+name, func() (bool, string) { return checked(l, name, text) })
	}
	w, err := l.echoes("sim")
	if err != nil {
		return err
	}
	l.way("reload-of-bombs", func() (bool, string) { return reloadBombs(l, w) })
	l.way("reload-of-no-files", func() (bool, string) { return reloadOddities(l, w) })
	l.way("hangup-storm", func() (bool, string) { return hangupStorm(l, w) })
	return nil
}

// checked runs `warmpath check` on a file. It is refused within 2 s and 200 MB, by a line that names where.
func checked(l *lab, name, text string) (bool, string) {
	path := filepath.Join(l.dir, name+".toml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return false, err.Error()
	}
	c := exec.CommandContext(l.ctx, l.bin, "check", "--config", path)
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	began := time.Now()
	if err := c.Start(); err != nil {
		return false, err.Error()
	}
	done := make(chan struct{})
	go func() { c.Wait(); close(done) }() // its result is in ProcessState
	stopped, most := false, int64(0)
	for over := false; !over; {
		select {
		case <-done:
			over = true
		case <-time.After(2 * time.Millisecond):
			most = max(most, peakOf(c.Process.Pid))
			if !stopped && (most > 700<<20 || time.Since(began) > 10*time.Second) {
				stopped = true
				c.Process.Kill()
			}
		}
	}
	took := time.Since(began)
	code := c.ProcessState.ExitCode()
	return code == 1 && took < 2*time.Second && most < 200<<20 && out.Len() > 0,
		fmt.Sprintf("%d bytes: exit %d after %.2f s (stopped %v), %s of memory: %.160s", len(text), code, took.Seconds(),
			stopped, mb(most), out.String())
}

// peakOf is the most memory that a process has held; 0 after its end. The kernel's figure at the end (ru_maxrss)
// would be of no use: it begins at what this process held when it started the other one.
func peakOf(pid int) int64 {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, rest, _ := strings.Cut(string(b), "VmHWM:")
	f := strings.Fields(rest)
	if len(f) == 0 {
		return 0
	}
	kb, _ := strconv.ParseInt(f[0], 10, 64)
	return kb << 10
}

// pools are the lines of a pool with this name, by which a reload is seen to be taken up.
func pools(name string, w *echo) rig.Router {
	return rig.Router{Pool: fmt.Sprintf("name = %q\n", name), Workers: []string{w.addr}}
}

// taken tells whether the daemon has a pool of this name.
func taken(d *rig.Proc, name string) bool {
	a := wire.Once(d.Admin, wire.Request("GET", "/api/v1/pools", "", "Host: "+d.Admin))
	return a.Status == 200 && strings.Contains(string(a.Body), strconv.Quote(name))
}

// reloadBombs puts each bomb in place of a running daemon's file, and a good file after it.
func reloadBombs(l *lab, w *echo) (bool, string) {
	conf := pools("pool0", w)
	d, err := l.serve(conf)
	if err != nil {
		return false, err.Error()
	}
	// Good files take memory, too: a new pool has modules and an index, and the old one's are garbage for a while.
	for i := range bombs {
		if err := pools("control-"+i, w).Rewrite(d); err != nil {
			return false, err.Error()
		}
		d.Signal(syscall.SIGHUP)
		if !rig.Eventually(5*time.Second, func() bool { return taken(d, "control-"+i) }) {
			return false, "a good file is not taken up before any bomb"
		}
	}
	was, most, round := d.RSS(), int64(0), 0
	var late []string
	for name, text := range inOrder(bombs) {
		if err := rig.Replace(d.Conf, text); err != nil {
			return false, err.Error()
		}
		d.Signal(syscall.SIGHUP)
		most = max(most, watchRSS(d, 700*time.Millisecond))
		round++
		pool := fmt.Sprintf("pool%d", round)
		if err := pools(pool, w).Rewrite(d); err != nil {
			return false, err.Error()
		}
		d.Signal(syscall.SIGHUP)
		up := rig.Eventually(5*time.Second, func() bool {
			most = max(most, d.RSS())
			return most > 700<<20 || taken(d, pool)
		})
		if most > 700<<20 {
			l.end(d) // before the machine suffers
			return false, fmt.Sprintf("after %s: memory %s -> %s, stopped there", name, mb(was), mb(most))
		}
		if !up {
			late = append(late, name)
			break // it hangs
		}
	}
	served := answers(d.Addr)
	trouble := l.end(d)
	return len(late) == 0 && served && most-was < 128<<20 && trouble == "",
		fmt.Sprintf("%d of %d bombs, a good file taken up after each but %q; memory %s -> %s at most; served %v %s",
			round, len(bombs), late, mb(was), mb(most), served, trouble)
}

// reloadOddities puts what is no configuration at all in the file's place.
func reloadOddities(l *lab, w *echo) (bool, string) {
	d, err := l.serve(pools("pool0", w))
	if err != nil {
		return false, err.Error()
	}
	put := map[string]func(path string) error{
		"empty":      func(p string) error { return os.WriteFile(p, nil, 0o600) },
		"binary":     func(p string) error { return os.WriteFile(p, bytes.Repeat([]byte{0, 255, 7}, 1000), 0o600) },
		"200 MB":     func(p string) error { return sparse(p, 200<<20) },
		"directory":  func(p string) error { return os.Mkdir(p, 0o700) },
		"fifo":       func(p string) error { return syscall.Mkfifo(p, 0o600) },
		"link loop":  func(p string) error { return os.Symlink(p, p) },
		"no file":    func(string) error { return nil },
		"/dev/zero":  func(p string) error { return os.Symlink("/dev/zero", p) },
		"unreadable": func(p string) error { return os.Symlink("/proc/self/mem", p) },
	}
	failed, most, round := 0, int64(0), 0
	var late []string
	for name, make := range inOrder(put) {
		os.RemoveAll(d.Conf)
		if err := make(d.Conf); err != nil {
			return false, name + ": " + err.Error()
		}
		d.Signal(syscall.SIGHUP)
		for range 5 {
			if !answers(d.Addr) {
				failed++
			}
		}
		most = max(most, watchRSS(d, 200*time.Millisecond))
		os.RemoveAll(d.Conf)
		round++
		pool := fmt.Sprintf("pool%d", round)
		if err := pools(pool, w).Rewrite(d); err != nil {
			return false, err.Error()
		}
		d.Signal(syscall.SIGHUP)
		if !rig.Eventually(5*time.Second, func() bool { return taken(d, pool) }) {
			late = append(late, name)
			break
		}
	}
	trouble := l.end(d)
	return failed == 0 && len(late) == 0 && most < 256<<20 && trouble == "",
		fmt.Sprintf("%d of %d in place of the file: %d requests failed, a good file taken up after each but %q; memory "+
			"%s at most %s",
			round, len(put), failed, late, mb(most), trouble)
}

// sparse makes a file of so many zeros, which take no room on the disk.
func sparse(path string, size int64) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Truncate(size)
}

// hangupStorm reloads 300 times in a second and a half beside requests.
func hangupStorm(l *lab, w *echo) (bool, string) {
	d, err := l.serve(pools("pool0", w))
	if err != nil {
		return false, err.Error()
	}
	stop := make(chan struct{})
	failed := make(chan [2]int)
	go func() {
		var sent, bad int
		for {
			select {
			case <-stop:
				failed <- [2]int{sent, bad}
				return
			default:
			}
			sent++
			if !answers(d.Addr) {
				bad++
			}
		}
	}()
	for i := range 300 {
		if i%30 == 0 {
			if err := pools(fmt.Sprintf("pool%d", i), w).Rewrite(d); err != nil {
				return false, err.Error()
			}
		}
		d.Signal(syscall.SIGHUP)
		time.Sleep(5 * time.Millisecond)
	}
	up := rig.Eventually(5*time.Second, func() bool { return taken(d, "pool270") })
	close(stop)
	n := <-failed
	trouble := l.end(d)
	return n[1] == 0 && n[0] > 0 && up && trouble == "", fmt.Sprintf("300 SIGHUP: %d of %d requests failed, last "+
		"file taken up %v %s", n[1], n[0], up, trouble)
}
