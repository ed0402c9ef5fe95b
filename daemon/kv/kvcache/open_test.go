package kvcache

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// segmentName returns a name that no other test uses.
func segmentName(t *testing.T) string {
	name := fmt.Sprintf("warmpath-test-%d-%s", os.Getpid(), t.Name())
	t.Cleanup(func() {
		for _, n := range []string{name, "." + name + ".warmpath"} {
			if os.Remove("/dev/shm/"+n) == nil {
				t.Errorf("/dev/shm/%s is left behind", n)
			}
		}
	})
	return name
}

func config() Config {
	return Config{MaxBytes: 8 << 20, Policy: "lru", MaxConns: 10, Mode: 0o600, Log: slog.New(slog.DiscardHandler),
		Password: func() (string, error) { return "", nil }}
}

// running opens and runs a cache until the test ends, or until stop.
func running(t *testing.T, c Config) (k *Cache, stop func()) {
	t.Helper()
	k, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- k.Run() }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		k.Close()
		if err := <-done; err != nil {
			t.Errorf("Run = %v", err)
		}
	}
	t.Cleanup(stop)
	return k, stop
}

func client(t *testing.T, k *Cache) *redis.Client {
	c := redis.NewClient(&redis.Options{Addr: k.RESPAddr(), MaxRetries: -1})
	t.Cleanup(func() { c.Close() })
	return c
}

func TestNoDoor(t *testing.T) {
	c := config()
	c.MaxBytes = 1 << 50 // more memory than there is
	k, _ := running(t, c)
	if _, there := k.Stats(); there || k.RESPAddr() != "" || k.HyperPodAddr() != "" {
		t.Error("there is a cache without a door")
	}
	var none *Cache
	none.Close()
}

// TestRefused: the error names what cannot be opened, and no file, port or lock stays behind.
func TestRefused(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	segment, dir := segmentName(t), t.TempDir()
	both := config()
	both.RESP, both.HyperPod, both.Segment = "127.0.0.1:0", "127.0.0.1:0", segment
	both.SpillDir, both.SpillBytes = filepath.Join(dir, "spill"), 64<<20
	f := func(want string, change func(*Config)) {
		t.Helper()
		c := both
		change(&c)
		k, err := Open(c)
		if err == nil {
			k.Close()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Open = %v; want %q", err, want)
		}
		k, err = Open(both) // the failure left nothing in the way
		if err != nil {
			t.Fatalf("after that: %v", err)
		}
		k.Close()
	}
	f("kv_cache.resp", func(c *Config) { c.RESP = taken.Addr().String() })
	f("kv_cache.hyperpod", func(c *Config) { c.HyperPod = taken.Addr().String() })
	f("kv_cache.resp", func(c *Config) { c.Password = func() (string, error) { return "", os.ErrNotExist } })
	f("too few", func(c *Config) { c.MaxBytes = 1 << 20 })
	f("policy", func(c *Config) { c.Policy = "random" })
	f("has room for", func(c *Config) { c.MaxBytes = 1 << 50 }) // /dev/shm is too small
	f("kv_cache.spill_dir", func(c *Config) { c.SpillBytes = 1 })
	f("kv_cache.spill_dir", func(c *Config) {
		c.SpillDir = filepath.Join(dir, "file")
		if err := os.WriteFile(c.SpillDir, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	})
}

// TestTwoDaemons: the second daemon on a segment or a folder is refused, and the first one serves on.
func TestTwoDaemons(t *testing.T) {
	c := config()
	c.RESP, c.HyperPod, c.Segment = "127.0.0.1:0", "127.0.0.1:0", segmentName(t)
	c.SpillDir, c.SpillBytes = t.TempDir(), 64<<20
	k, _ := running(t, c)
	f := func(change func(*Config)) {
		t.Helper()
		second := c
		change(&second)
		other, err := Open(second)
		if err == nil {
			other.Close()
		}
		if err == nil || !strings.Contains(err.Error(), "another daemon") {
			t.Errorf("the second one: %v", err)
		}
	}
	f(func(c *Config) { c.SpillDir = "" })
	f(func(c *Config) { c.HyperPod, c.Segment = "", "" })
	r := client(t, k)
	if err := r.Set(t.Context(), "k", "v", 0).Err(); err != nil {
		t.Error(err)
	}
	if got, err := r.Get(t.Context(), "k").Result(); got != "v" {
		t.Errorf("GET = %q, %v", got, err)
	}
	if _, err := os.Stat("/dev/shm/" + c.Segment); err != nil {
		t.Error(err)
	}
}

// TestRestart: spilled values are there again, and values of memory alone are misses.
func TestRestart(t *testing.T) {
	c := config()
	c.RESP, c.SpillDir, c.SpillBytes = "127.0.0.1:0", t.TempDir(), 64<<20
	k, stop := running(t, c)
	r := client(t, k)
	value := strings.Repeat("v", 300_000)
	for i := range 60 { // twice what memory holds
		if err := r.Set(t.Context(), fmt.Sprint("k", i), value+fmt.Sprint(i), 0).Err(); err != nil {
			t.Fatal(err)
		}
		spilled := func() bool { s, _ := k.Stats(); return s.Spill.Values+int(s.Spill.Skipped) > i }
		for end := time.Now().Add(10 * time.Second); !spilled() && time.Now().Before(end); {
			time.Sleep(time.Millisecond)
		}
	}
	before, _ := k.Stats()
	if before.Store.Evictions == 0 || before.Spill.Values < 50 {
		t.Fatalf("%d evictions, %d values on the disk", before.Store.Evictions, before.Spill.Values)
	}
	stop()
	k, _ = running(t, c)
	r = client(t, k)
	found := 0
	for i := range 60 {
		got, err := r.Get(context.Background(), fmt.Sprint("k", i)).Result()
		switch {
		case err == redis.Nil:
		case err != nil || got != value+fmt.Sprint(i):
			t.Errorf("k%d: %d bytes, %v", i, len(got), err)
		default:
			found++
		}
	}
	if found != before.Spill.Values {
		t.Errorf("%d values are found again; %d were on the disk", found, before.Spill.Values)
	}
	if s, _ := k.Stats(); s.Spill.Corrupt+s.Spill.Torn != 0 {
		t.Errorf("%+v", s.Spill)
	}
}
