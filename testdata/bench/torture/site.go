package main

import (
	"bufio"
	"cmp"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/warmpath/warmpath/testdata/rig"
)

const (
	memory  = 64 << 20
	spilled = 256 << 20
	disk    = 96 << 20 // less than that: the disk is full before the spill is
)

// site is one daemon with its folder. Its lives follow each other on the same ports, segment and spilled values.
type site struct {
	name, bin, dir string
	resp, pod      string // addresses; pod may be ""
	segment        string
	mounted        bool

	life atomic.Int64 // how often it was killed: raised while no process runs

	mu sync.Mutex // guards p
	p  *rig.Proc
}

func newSite(bin, dir, name string, pod bool) (*site, error) {
	s := &site{name: name, bin: bin, dir: filepath.Join(dir, name)}
	s.resp = rig.FreeAddr()
	if pod {
		s.segment = fmt.Sprintf("kvtorture-%d", os.Getpid())
		s.pod = rig.FreeAddr()
	}
	folder := filepath.Join(s.dir, "spill")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	s.mounted = syscall.Mount("kvtorture", folder, "tmpfs", 0, fmt.Sprintf("size=%d,mode=700", disk)) == nil
	text := fmt.Sprintf("[server]\nlisten = '127.0.0.1:0'\nadmin = '127.0.0.1:0'\nlog_level = 'error'\n[kv_cache]\n"+
		"resp = '%s'\nhyperpod = '%s'\nsegment = '%s'\nmax_bytes = %d\nspill_dir = '%s'\nspill_bytes = %d\n"+
		"[[pools]]\nstrategy = 'roundrobin'\nworkers = [{ url = 'http://127.0.0.1:1' }]\n",
		s.resp, s.pod, cmp.Or(s.segment, "none"), memory, folder, spilled)
	if err := os.WriteFile(s.dir+"/warmpath.toml", []byte(text), 0o600); err != nil {
		return nil, err
	}
	return s, s.start()
}

// start begins a life.
func (s *site) start() error {
	cmd := exec.Command(s.bin, "serve", "--config", filepath.Join(s.dir, "warmpath.toml"))
	cmd.Env = append(os.Environ(), "GOGC=25") // or the heap takes minutes from 34 MiB to 68, which hides what grows
	p, err := rig.StartCmd(s.dir, "log", s.resp, cmd)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.p = p
	s.mu.Unlock()
	return p.AwaitPort()
}

// kill ends the life with no warning, and begins another one.
func (s *site) kill() error {
	s.process().Stop()
	s.life.Add(1)
	return s.start()
}

func (s *site) process() *rig.Proc {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.p
}

// fill takes what is left of the disk, or gives it back.
func (s *site) fill(full bool) {
	ballast := filepath.Join(s.dir, "spill", "ballast")
	if !full || !s.mounted {
		_ = os.Remove(ballast)
		return
	}
	_ = os.WriteFile(ballast, make([]byte, disk), 0o600) // as far as there is room
}

// close ends the last life as an operator would, and takes everything away.
func (s *site) close() {
	s.process().End(20 * time.Second)
	if s.mounted {
		_ = syscall.Unmount(filepath.Join(s.dir, "spill"), 0)
	}
	if s.segment != "" {
		_ = os.Remove("/dev/shm/" + s.segment)
		_ = os.Remove("/dev/shm/." + s.segment + ".warmpath")
	}
}

var infoLine = regexp.MustCompile(`(?m)^(pinned_keys|leased_values|keys):(\d+)`)

// held asks what is promised and leased.
func (s *site) held() (pins, leases int, err error) {
	c, err := net.Dial("tcp", s.resp)
	if err != nil {
		return 0, 0, err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := c.Write([]byte("*1\r\n$4\r\nINFO\r\n")); err != nil {
		return 0, 0, err
	}
	text, _, err := readBulk(bufio.NewReader(c))
	if err != nil {
		return 0, 0, err
	}
	for _, m := range infoLine.FindAllStringSubmatch(string(text), -1) {
		n, _ := strconv.Atoi(m[2])
		switch m[1] {
		case "pinned_keys":
			pins = n
		case "leased_values":
			leases = n
		}
	}
	return pins, leases, nil
}
