// Command doors lets the connectors of unmodified LMCache put chunks through the doors of the KV cache and read them
// back: redis://, resp:// and sagemaker-hyperpod://. Every byte is compared. redis-server has its turns in the same
// run. It prints one JSON line for each release, scheme and size. See README.md one folder up.
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// reading is a line of l2check.py.
type reading struct {
	LMCache string  `json:"lmcache"`
	MiB     int     `json:"mib"`
	OK      bool    `json:"ok"`
	Put     float64 `json:"put_GBps"`
	Get     float64 `json:"get_GBps"`
	Exists  float64 `json:"exists_us"`
}

// figure is a line of ours. redis-server has no door for sagemaker-hyperpod://, and stands beside it with redis://.
type figure struct {
	LMCache  string  `json:"lmcache"`
	Scheme   string  `json:"scheme"`
	MiB      int     `json:"mib"`
	OK       bool    `json:"ok"` // all bytes equal, hits and misses right
	Put      float64 `json:"put_GBps"`
	Get      float64 `json:"get_GBps"`
	Exists   float64 `json:"exists_us"`
	RedisPut float64 `json:"redis_put_GBps"`
	RedisGet float64 `json:"redis_get_GBps"`
	PutRatio float64 `json:"put_ratio"`
	GetRatio float64 `json:"get_ratio"`
}

// options are the flags.
type options struct {
	bin, script, mib, chunks, rounds string
	turns                            int
	schemes                          []string
}

func main() {
	var o options
	flag.StringVar(&o.bin, "bin", "bin/warmpath", "the program to check")
	flag.StringVar(&o.script, "script", "testdata/reallmcache/doors/l2check.py", "the script that drives LMCache")
	flag.StringVar(&o.mib, "mib", "1,4,16", "sizes of chunks, in MiB")
	flag.StringVar(&o.chunks, "chunks", "16", "chunks of a round")
	flag.StringVar(&o.rounds, "rounds", "4", "rounds of a turn, of which the fastest counts")
	flag.IntVar(&o.turns, "turns", 1, "turns of each server; the middle counts")
	schemes := flag.String("schemes", "redis,resp,sagemaker-hyperpod", "those to check")
	pythons := flag.String("pythons", "python3", "of environments that have lmcache, separated by commas")
	flag.Parse()
	o.schemes = strings.Split(*schemes, ",")
	if err := run(o, strings.Split(*pythons, ",")); err != nil {
		fmt.Fprintln(os.Stderr, "doors:", err)
		os.Exit(1)
	}
}

func run(o options, pythons []string) error {
	dir, err := os.MkdirTemp("", "doors")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	addr, err := addresses()
	if err != nil {
		return err
	}
	segment := fmt.Sprintf("doors-%d", os.Getpid())
	stop, err := startServers(o.bin, dir, segment, addr)
	defer stop()
	if err != nil {
		return err
	}
	good := true
	for _, python := range pythons {
		for _, scheme := range o.schemes {
			if scheme == "resp" && !hasRESP(python) {
				continue
			}
			list, err := compare(o, python, scheme, segment, addr)
			if err != nil {
				return err
			}
			for _, f := range list {
				good = good && f.OK
				if err := json.NewEncoder(os.Stdout).Encode(f); err != nil {
					return err
				}
			}
		}
	}
	if !good {
		return fmt.Errorf("bytes, hits or misses were wrong: look for a line with ok = false")
	}
	return nil
}

// places are where the servers listen.
type places struct{ resp, pod, redis string }

func addresses() (p places, err error) {
	for _, a := range []*string{&p.resp, &p.pod, &p.redis} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return p, err
		}
		defer l.Close()
		*a = l.Addr().String()
	}
	return p, nil
}

// startServers runs one warmpath for each door, as they are used, and redis-server.
func startServers(bin, dir, segment string, addr places) (stop func(), err error) {
	var running []*exec.Cmd
	stop = func() {
		for _, c := range running {
			_ = c.Process.Signal(os.Interrupt)
			late := time.AfterFunc(15*time.Second, func() { _ = c.Process.Kill() })
			_ = c.Wait()
			late.Stop()
		}
	}
	start := func(address string, cmd *exec.Cmd) error {
		cmd.Stderr = os.Stderr
		if err := cmd.Start(); err != nil {
			return err
		}
		running = append(running, cmd)
		for range 1000 {
			if c, err := net.Dial("tcp", address); err == nil {
				return c.Close()
			}
			time.Sleep(20 * time.Millisecond)
		}
		return fmt.Errorf("%s does not listen on %s", cmd.Path, address)
	}
	serve := func(name, doors string) *exec.Cmd {
		file := filepath.Join(dir, name)
		text := "[server]\nlisten = '127.0.0.1:0'\nadmin = '127.0.0.1:0'\nlog_level = 'error'\n" +
			"[kv_cache]\nmax_bytes = 2147483648\n" + doors +
			"[[pools]]\nstrategy = 'roundrobin'\nworkers = [{ url = 'http://127.0.0.1:1' }]\n"
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			return exec.Command("false")
		}
		return exec.Command(bin, "serve", "--config", file)
	}
	if err := start(addr.resp, serve("resp", fmt.Sprintf("resp = '%s'\n", addr.resp))); err != nil {
		return stop, err
	}
	pod := fmt.Sprintf("hyperpod = '%s'\nsegment = '%s'\n", addr.pod, segment)
	if err := start(addr.pod, serve("pod", pod)); err != nil {
		return stop, err
	}
	_, port, _ := net.SplitHostPort(addr.redis)
	return stop, start(addr.redis, exec.Command("redis-server", "--bind", "127.0.0.1", "--port", port, "--dir", dir,
		"--save", "", "--maxmemory", "2147483648", "--maxmemory-policy", "allkeys-lru"))
}

// hasRESP: the connector came after 0.3.9.
func hasRESP(python string) bool {
	out, err := exec.Command(python, "-c", "from importlib.metadata import version as v; print(v('lmcache'))").Output()
	return err == nil && !strings.HasPrefix(string(out), "0.3.9")
}

// compare gives warmpath and redis-server their turns.
func compare(o options, python, scheme, segment string, addr places) (list []figure, err error) {
	ours, theirs := scheme+"://"+addr.resp, scheme+"://"+addr.redis
	if scheme == "sagemaker-hyperpod" {
		ours, theirs = scheme+"://"+addr.pod, "redis://"+addr.redis
	}
	all := map[string][][]reading{}
	for turn := range o.turns {
		order := []string{ours, theirs}
		if turn%2 == 1 {
			slices.Reverse(order)
		}
		for _, url := range order {
			r, err := check(o, python, url, segment)
			if err != nil {
				return nil, fmt.Errorf("%s, %s: %w", python, url, err)
			}
			all[url] = append(all[url], r)
		}
	}
	for i := range all[ours][0] {
		var put, get, redisPut, redisGet, putRatio, getRatio, exists []float64
		ok := true
		for turn := range o.turns {
			a, b := all[ours][turn][i], all[theirs][turn][i]
			ok = ok && a.OK
			put, get, exists = append(put, a.Put), append(get, a.Get), append(exists, a.Exists)
			redisPut, redisGet = append(redisPut, b.Put), append(redisGet, b.Get)
			putRatio, getRatio = append(putRatio, a.Put/b.Put), append(getRatio, a.Get/b.Get)
		}
		first := all[ours][0][i]
		list = append(list, figure{LMCache: first.LMCache, Scheme: scheme, MiB: first.MiB, OK: ok, Put: middle(put),
			Get: middle(get), Exists: middle(exists), RedisPut: middle(redisPut), RedisGet: middle(redisGet),
			PutRatio: middle(putRatio), GetRatio: middle(getRatio)})
	}
	return list, nil
}

func middle(list []float64) float64 {
	slices.Sort(list)
	return list[len(list)/2]
}

// check runs the script once: a line a size.
func check(o options, python, url, segment string) (list []reading, err error) {
	cmd := exec.Command(python, o.script, url, "--mib", o.mib, "--chunks", o.chunks, "--rounds", o.rounds,
		"--shm", segment)
	cmd.Env = append(os.Environ(), "PYTHONHASHSEED=0")
	var out, complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaint
	late := time.AfterFunc(10*time.Minute, func() { _ = cmd.Process.Kill() })
	err = cmd.Run()
	late.Stop()
	for _, line := range strings.Split(out.String(), "\n") {
		var r reading
		if json.Unmarshal([]byte(line), &r) == nil && r.LMCache != "" {
			list = append(list, r)
		}
	}
	if want := strings.Count(o.mib, ",") + 1; len(list) != want {
		text := complaint.String()
		return nil, fmt.Errorf("%d of %d sizes were checked, %w: %s", len(list), want, err, text[max(0, len(text)-1000):])
	}
	return list, nil
}
