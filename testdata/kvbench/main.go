package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"
)

// figure is one line of the output.
type figure struct {
	Name     string  `json:"name"`
	Warmpath float64 `json:"warmpath_GBps"` // the middle of the rounds
	Redis    float64 `json:"redis_GBps"`
	Ratio    float64 `json:"ratio"`
	Least    float64 `json:"least"` // that is asked of the ratio; 0 = nothing
	OK       bool    `json:"ok"`
}

const memory = 1 << 30 // of each server

func main() {
	bin := flag.String("bin", "bin/warmpath", "the program to measure")
	rounds := flag.Int("rounds", 3, "turns that each server gets at each figure")
	budget := flag.Int64("bytes", 256<<20, "of values that a turn puts and gets, at most 20,000 values")
	flag.Parse()
	if err := run(*bin, *rounds, *budget); err != nil {
		fmt.Fprintln(os.Stderr, "kvbench:", err)
		os.Exit(1)
	}
}

func run(bin string, rounds int, budget int64) error {
	dir, err := os.MkdirTemp("", "kvbench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	ours, err := startWarmpath(bin, dir)
	if err != nil {
		return err
	}
	defer ours.stop()
	redis, err := startRedis(dir)
	if err != nil {
		return err
	}
	defer redis.stop()
	for _, s := range []*server{ours, redis} { // both have touched all of their memory
		c, err := newClient(s.addr, 0, 8<<20)
		if err != nil {
			return err
		}
		if err := c.put(memory / len(c.value) * 5 / 4); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		c.conn.Close()
	}
	out := json.NewEncoder(os.Stdout)
	for _, clients := range []int{1, 8} {
		for _, size := range []int{1 << 10, 1 << 20, 4 << 20, 16 << 20, 32 << 20} {
			set, get, err := compare(ours, redis, turn{clients: clients, size: size, budget: budget}, rounds)
			if err != nil {
				return err
			}
			for _, f := range []figure{set, get} {
				if err := out.Encode(f); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// compare gives the servers their turns.
func compare(ours, redis *server, t turn, rounds int) (set, get figure, err error) {
	var sets, gets [2][]float64
	for range rounds {
		for i, s := range []*server{ours, redis} {
			putRate, getRate, err := t.run(s.addr)
			if err != nil {
				return set, get, fmt.Errorf("%s: %w", s.name, err)
			}
			sets[i] = append(sets[i], putRate)
			gets[i] = append(gets[i], getRate)
		}
	}
	name := fmt.Sprintf("%s of %s, %d clients", "%s", sizeName(t.size), t.clients)
	return newFigure(fmt.Sprintf(name, "SET"), sets, leastOf(t.size, 1.3)),
		newFigure(fmt.Sprintf(name, "GET"), gets, leastOf(t.size, 1.5)), nil
}

// leastOf: the ratios are asked at LMCache's sizes, and never less than redis-server's speed elsewhere.
func leastOf(size int, asked float64) float64 {
	if size >= 1<<20 && size <= 16<<20 {
		return asked
	}
	return 1
}

func newFigure(name string, rates [2][]float64, least float64) figure {
	f := figure{Name: name, Warmpath: middle(rates[0]), Redis: middle(rates[1]), Least: least}
	f.Ratio = f.Warmpath / f.Redis
	f.OK = f.Ratio >= least
	return f
}

func middle(list []float64) float64 {
	slices.Sort(list)
	return list[len(list)/2]
}

func sizeName(n int) string {
	if n >= 1<<20 {
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%d KiB", n>>10)
}

// server is a process under measurement.
type server struct {
	name, addr string
	cmd        *exec.Cmd
}

func (s *server) stop() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

// start runs a process until its address answers.
func start(name, addr string, cmd *exec.Cmd) (*server, error) {
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("%s does not start: %w", name, err)
	}
	s := &server{name: name, addr: addr, cmd: cmd}
	for range 500 {
		if c, err := net.Dial("tcp", addr); err == nil {
			c.Close()
			return s, nil
		}
		time.Sleep(20 * time.Millisecond)
	}
	s.stop()
	return nil, fmt.Errorf("%s does not listen on %s", name, addr)
}

func startWarmpath(bin, dir string) (*server, error) {
	addr, err := freeAddr()
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "warmpath.toml")
	text := fmt.Sprintf("[server]\nlisten = '127.0.0.1:0'\nadmin = '127.0.0.1:0'\nlog_level = 'error'\n"+
		"[kv_cache]\nresp = '%s'\nmax_bytes = %d\n"+
		"[[pools]]\nstrategy = 'roundrobin'\nworkers = [{ url = 'http://127.0.0.1:1' }]\n",
		addr, memory)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return nil, err
	}
	return start("warmpath", addr, exec.Command(bin, "serve", "--config", file))
}

func startRedis(dir string) (*server, error) {
	addr, err := freeAddr()
	if err != nil {
		return nil, err
	}
	_, port, _ := net.SplitHostPort(addr)
	return start("redis-server", addr, exec.Command("redis-server", "--bind", "127.0.0.1", "--port", port, "--dir", dir,
		"--save", "", "--maxmemory", fmt.Sprint(memory), "--maxmemory-policy", "allkeys-lru"))
}

func freeAddr() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}
