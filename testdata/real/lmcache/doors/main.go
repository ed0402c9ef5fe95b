// Command doors lets the connectors of unmodified LMCache put chunks through the doors of the KV cache and read them
// back: redis://, resp:// and sagemaker-hyperpod://. Every byte is compared. redis-server has its turns in the same
// run, and a server that does as little as it can: where that is no faster than warmpath, the client is the limit. It
// prints one JSON line for each release, scheme and size. See README.md one folder up.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/warmpath/warmpath/testdata/rig"
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
	PutLimit float64 `json:"limit_put_GBps"` // of the server that does the least
	GetLimit float64 `json:"limit_get_GBps"`
	PutShare float64 `json:"put_share"` // of that limit
	GetShare float64 `json:"get_share"`
}

// options are the flags.
type options struct {
	bin, script, mib, chunks, rounds string
	turns                            int
	schemes                          []string
}

func main() {
	if at := os.Getenv(limitAt); at != "" {
		list := strings.Fields(at)
		fmt.Fprintln(os.Stderr, "doors:", serveLimit(list[0], list[1], list[2]))
		os.Exit(1)
	}
	var o options
	flag.StringVar(&o.bin, "bin", "bin/warmpath", "the program to check")
	flag.StringVar(&o.script, "script", "testdata/real/lmcache/doors/l2check.py", "the script that drives LMCache")
	flag.StringVar(&o.mib, "mib", "1,4,16", "sizes of chunks, in MiB")
	flag.StringVar(&o.chunks, "chunks", "16", "chunks of a round")
	flag.StringVar(&o.rounds, "rounds", "4", "rounds of a turn, of which the fastest counts")
	flag.IntVar(&o.turns, "turns", 1, "turns of each server; the middle counts")
	schemes := flag.String("schemes", "redis,resp,sagemaker-hyperpod", "those to check")
	pythons := flag.String("pythons", "python3", "of environments that have lmcache, separated by commas")
	flag.Parse()
	o.schemes = strings.Split(*schemes, ",")
	rig.Main("doors", "", func(_ context.Context, dir string) (ok bool, err error) {
		o.bin, err = filepath.Abs(o.bin)
		if err != nil {
			return false, err
		}
		return true, run(o, dir, strings.Split(*pythons, ","))
	})
}

func run(o options, dir string, pythons []string) error {
	addr := addresses()
	segment := fmt.Sprintf("doors-%d", os.Getpid())
	defer forget(limitSegment(segment))
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

// places are where the servers listen; limit and limitPod are those of the server that shows the limit.
type places struct{ resp, pod, redis, limit, limitPod string }

// limitAt is in the environment of a process that is the server that shows the limit: its addresses, and its segment.
const limitAt = "DOORS_LIMIT_AT"

func addresses() places {
	return places{resp: rig.FreeAddr(), pod: rig.FreeAddr(), redis: rig.FreeAddr(), limit: rig.FreeAddr(),
		limitPod: rig.FreeAddr()}
}

// startServers runs one warmpath for each door, as they are used, redis-server, and this program as the limit.
func startServers(bin, dir, segment string, addr places) (stop func(), err error) {
	var running []*rig.Proc
	stop = func() {
		for _, p := range running {
			p.End(15 * time.Second)
		}
	}
	keep := func(p *rig.Proc, err error) error {
		if err == nil {
			running = append(running, p)
		}
		return err
	}
	serve := func(at, doors string) error {
		return keep(rig.Serve(dir, bin, at, "[server]\nlisten = '127.0.0.1:0'\nadmin = '127.0.0.1:0'\nlog_level = 'error'\n"+
			"[kv_cache]\nmax_bytes = 2147483648\n"+doors+
			"[[pools]]\nstrategy = 'roundrobin'\nworkers = [{ url = 'http://127.0.0.1:1' }]\n"))
	}
	if err := serve(addr.resp, fmt.Sprintf("resp = '%s'\n", addr.resp)); err != nil {
		return stop, err
	}
	if err := serve(addr.pod, fmt.Sprintf("hyperpod = '%s'\nsegment = '%s'\n", addr.pod, segment)); err != nil {
		return stop, err
	}
	self, err := os.Executable()
	if err != nil {
		return stop, err
	}
	least := exec.Command(self)
	least.Env = append(os.Environ(), fmt.Sprint(limitAt, "=", addr.limit, " ", addr.limitPod, " ", limitSegment(segment)))
	p, err := rig.StartCmd(dir, "limit", addr.limit, least)
	if err := keep(p, err); err != nil {
		return stop, err
	}
	if err := p.AwaitPort(); err != nil {
		return stop, err
	}
	return stop, keep(rig.Redis(dir, addr.redis, "--maxmemory", "2147483648", "--maxmemory-policy", "allkeys-lru"))
}

// limitSegment is the name of the segment of the server that shows the limit.
func limitSegment(segment string) string { return segment + "-limit" }

// hasRESP: the connector came after 0.3.9.
func hasRESP(python string) bool {
	out, err := exec.Command(python, "-c", "from importlib.metadata import version as v; print(v('lmcache'))").Output()
	return err == nil && !strings.HasPrefix(string(out), "0.3.9")
}

// server is one that LMCache is let to, and the segment of its shared memory.
type server struct{ url, segment string }

// compare gives warmpath, redis-server and the limit their turns.
func compare(o options, python, scheme, segment string, addr places) (list []figure, err error) {
	scheme += "://"
	servers := []server{{url: scheme + addr.resp}, {url: scheme + addr.redis}, {url: scheme + addr.limit}}
	if scheme == "sagemaker-hyperpod://" {
		servers = []server{{scheme + addr.pod, segment}, {url: "redis://" + addr.redis},
			{scheme + addr.limitPod, limitSegment(segment)}}
	}
	all := make([][][]reading, len(servers)) // of each server, a turn, a size
	for turn := range o.turns {
		for n := range servers {
			i := (n + turn) % len(servers)
			if servers[i].segment == limitSegment(segment) {
				if err := giveName(servers[i].segment); err != nil {
					return nil, err
				}
			}
			r, err := check(o, python, servers[i])
			if err != nil {
				return nil, fmt.Errorf("%s, %s: %w", python, servers[i].url, err)
			}
			all[i] = append(all[i], r)
		}
	}
	for i, first := range all[0][0] {
		f := figure{LMCache: first.LMCache, Scheme: strings.TrimSuffix(scheme, "://"), MiB: first.MiB, OK: true}
		over := func(server, than int, of func(reading) float64) float64 { // than -1: itself
			var list []float64
			for turn := range o.turns {
				v := of(all[server][turn][i])
				if than >= 0 {
					v /= of(all[than][turn][i])
				}
				list = append(list, v)
			}
			return middle(list)
		}
		for _, turns := range all[0] {
			f.OK = f.OK && turns[i].OK
		}
		put, get := func(r reading) float64 { return r.Put }, func(r reading) float64 { return r.Get }
		const ours, redis, least = 0, 1, 2
		f.Put, f.RedisPut, f.PutLimit = over(ours, -1, put), over(redis, -1, put), over(least, -1, put)
		f.Get, f.RedisGet, f.GetLimit = over(ours, -1, get), over(redis, -1, get), over(least, -1, get)
		f.PutRatio, f.PutShare = over(ours, redis, put), over(ours, least, put)
		f.GetRatio, f.GetShare = over(ours, redis, get), over(ours, least, get)
		f.Exists = over(ours, -1, func(r reading) float64 { return r.Exists })
		list = append(list, f)
	}
	return list, nil
}

func middle(list []float64) float64 {
	slices.Sort(list)
	return list[len(list)/2]
}

// check runs the script once: a line a size.
func check(o options, python string, s server) (list []reading, err error) {
	cmd := exec.Command(python, o.script, s.url, "--mib", o.mib, "--chunks", o.chunks, "--rounds", o.rounds,
		"--shm", s.segment)
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
