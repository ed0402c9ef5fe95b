// Command lmcache checks cache/lmcache against the engine of an unmodified LMCache: it registers, what it stores is
// seen, prompts are matched to the token, evictions and a restart of the controller leave nothing wrong. See README.md.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/warmpath/warmpath/cache/lmcache"
)

func main() {
	python := flag.String("python", "python3", "of an environment that has lmcache")
	script := flag.String("engine", "testdata/real/lmcache/engine.py", "the engine's script")
	chunk := flag.Int("chunk", 256, "the worker's chunk_size")
	hash := flag.String("hash", "", "the worker's pre_caching_hash_algorithm; \"\" = its default")
	verbose := flag.Bool("v", false, "show the controller's log")
	flag.Parse()
	c := &check{python: *python, script: *script, chunk: *chunk, hash: *hash, log: slog.New(slog.DiscardHandler)}
	if *verbose {
		c.log = slog.New(slog.NewTextHandler(os.Stderr, nil))
	}
	if err := c.run(); err != nil {
		fmt.Fprintln(os.Stderr, "FAIL:", err)
		os.Exit(1)
	}
}

// check runs one engine against one controller after the other.
type check struct {
	python, script, hash string
	chunk                int
	log                  *slog.Logger

	keeper *lmcache.Controller
	roster *lmcache.Roster
	engine *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Scanner
}

const instance = "inst0"

func (c *check) run() error {
	pull, reply, worker, err := ports()
	if err != nil {
		return err
	}
	if err := c.listen(lmcache.Config{Pull: pull, Reply: reply, Heartbeat: "127.0.0.1:0"}); err != nil {
		return err
	}
	if err := c.start(pull, reply, worker); err != nil {
		return err
	}
	defer c.engine.Process.Kill()
	release := c.release()
	fmt.Println("ok   registers: LMCache", release)
	if err := c.stores(); err != nil {
		return err
	}
	if !strings.HasPrefix(release, "0.3.9") { // which neither numbers its operations nor tells its keys again
		if err := c.restarts(pull, reply); err != nil {
			return err
		}
	}
	if err := c.clears(); err != nil {
		return err
	}
	if _, err := c.say("close"); err != nil {
		return err
	}
	if err := c.await("the instance is gone or silent", func() bool { return c.match(1, 1025).Local == 0 }); err != nil {
		return err
	}
	fmt.Println("ok   leaves")
	return nil
}

// stores has prompts stored and matched: the first one tells how the engine hashes.
func (c *check) stores() error {
	if _, err := c.say("store 1 1025"); err != nil {
		return err
	}
	want := uint32(1024 / c.chunk * c.chunk)
	if err := c.await("1024 tokens are matched", func() bool { return c.match(1, 1026).Local == want }); err != nil {
		return err
	}
	fmt.Println("ok   found out:", c.state().Hash)
	for n := range 8 {
		from := 5000 * (n + 1)
		if _, err := c.say(fmt.Sprintf("store %d %d", from, from+c.chunk*(n+1))); err != nil {
			return err
		}
	}
	for n := range 8 {
		from, want := 5000*(n+1), c.chunk*(n+1)
		matched := func() bool { return int(c.match(from, from+want+1).Local) == want }
		if err := c.await("a prompt is matched", matched); err != nil {
			return err
		}
		answer, err := c.say(fmt.Sprintf("lookup %d %d", from, from+want+1))
		if err != nil {
			return err
		}
		if found, _ := answer["found"].(float64); int(found) != want {
			return fmt.Errorf("the engine finds %v tokens; we say %d", answer["found"], want)
		}
	}
	if got := c.match(90_000, 91_000); got.Local != 0 {
		return fmt.Errorf("of a prompt that was never stored %d tokens are matched", got.Local)
	}
	fmt.Println("ok   stores are seen, and match the engine's own lookups:", c.state().Keys)
	return nil
}

// restarts ends the controller and begins another on the same ports: the heartbeat makes the engine tell all its keys.
func (c *check) restarts(pull, reply string) error {
	before := c.state().Keys["LocalCPUBackend"]
	_, _, beat, _ := c.keeper.Addrs()
	c.keeper.Close()
	if err := c.listen(lmcache.Config{Pull: pull, Reply: reply, Heartbeat: beat}); err != nil {
		return err
	}
	told := func() bool {
		c.match(1, 1026)
		return c.keeper.Stats().Counts.Syncs == 1 && c.state().Keys["LocalCPUBackend"] == before
	}
	if err := c.await("the keys are told again", told); err != nil {
		return err
	}
	if err := c.await("prompts are matched again", func() bool { return c.match(1, 1026).Local > 0 }); err != nil {
		return err
	}
	fmt.Println("ok   a restarted controller is told all keys again")
	return nil
}

func (c *check) clears() error {
	if _, err := c.say("clear"); err != nil {
		return err
	}
	if err := c.await("evictions are seen", func() bool { return c.state().Keys["LocalCPUBackend"] == 0 }); err != nil {
		return err
	}
	if got := c.match(1, 1026); got.Local != 0 {
		return fmt.Errorf("%d tokens are matched after all was evicted", got.Local)
	}
	fmt.Println("ok   evictions are seen")
	return nil
}

func (c *check) listen(config lmcache.Config) (err error) {
	config.Log = c.log
	c.keeper, err = lmcache.New(config)
	if err != nil {
		return err
	}
	c.roster = c.keeper.NewRoster()
	c.roster.Set([]lmcache.Worker{{Slot: 1, ID: instance}})
	return nil
}

// ports returns three free addresses and closes them again.
func ports() (pull, reply, worker string, err error) {
	var all [3]string
	for n := range all {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return "", "", "", err
		}
		defer l.Close()
		all[n] = l.Addr().String()
	}
	return all[0], all[1], all[2], nil
}

func (c *check) start(pull, reply, worker string) error {
	_, port, _ := net.SplitHostPort(worker)
	args := []string{c.script, instance, pull, reply, port, fmt.Sprintf("chunk_size=%d", c.chunk)}
	if c.hash != "" {
		args = append(args, fmt.Sprintf("pre_caching_hash_algorithm=%q", c.hash))
	}
	c.engine = exec.Command(c.python, args...)
	c.engine.Env = append(os.Environ(), "PYTHONHASHSEED=0", "OMP_NUM_THREADS=1")
	var err error
	c.in, err = c.engine.StdinPipe()
	if err != nil {
		return err
	}
	out, err := c.engine.StdoutPipe()
	if err != nil {
		return err
	}
	c.out = bufio.NewScanner(out)
	if err := c.engine.Start(); err != nil {
		return err
	}
	return c.await("the engine registers", func() bool { return c.state().Ranks == 1 })
}

// release reads the engine's first line.
func (c *check) release() string {
	answer, err := c.read()
	if err != nil {
		return err.Error()
	}
	return fmt.Sprint(answer["lmcache"])
}

// say sends a command and returns what came of it.
func (c *check) say(command string) (map[string]any, error) {
	if _, err := io.WriteString(c.in, command+"\n"); err != nil {
		return nil, err
	}
	return c.read()
}

// read returns the next line of JSON. LMCache's own lines are passed over.
func (c *check) read() (answer map[string]any, err error) {
	for c.out.Scan() {
		if json.Unmarshal(c.out.Bytes(), &answer) == nil {
			return answer, nil
		}
	}
	return nil, fmt.Errorf("the engine has ended: %v", c.out.Err())
}

// match asks what the engine holds of a prompt of these tokens.
func (c *check) match(from, to int) lmcache.Held {
	ids := make([]uint32, to-from)
	for n := range ids {
		ids[n] = uint32(from + n)
	}
	var q lmcache.Query
	out := make([]lmcache.Held, 1)
	q.Reset("", ids)
	c.roster.Match(&q, []uint32{1}, out)
	return out[0]
}

func (c *check) state() lmcache.InstanceStats {
	for _, i := range c.keeper.Stats().Instances {
		if i.ID == instance {
			return i
		}
	}
	return lmcache.InstanceStats{}
}

func (c *check) await(what string, ok func() bool) error {
	for end := time.Now().Add(3 * time.Minute); !ok(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			return fmt.Errorf("not within 3 minutes: %s; the instance is %+v, %+v", what, c.state(), c.keeper.Stats().Counts)
		}
	}
	return nil
}
