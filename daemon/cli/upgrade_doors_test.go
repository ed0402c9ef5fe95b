package cli

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/warmpath/warmpath/daemon/lab/certtest"
	"github.com/warmpath/warmpath/daemon/lab/porttest"
)

// TestUpgradeHandsOverEveryDoor: after an upgrade the new process has them all: TLS, the doors of LMCache, a KV cache
// with a folder and a segment of its own, spilled values included, and sessions.
func TestUpgradeHandsOverEveryDoor(t *testing.T) {
	segment := fmt.Sprintf("warmpath-test-upgrade-%d", os.Getpid())
	port := porttest.Row(t, 6)
	at := func(i int) string { return fmt.Sprintf("127.0.0.1:%d", port+i) }
	s := newSiteWith(t, "1000", func(dir string) (server, tables string) {
		certtest.New(t, dir, "tls", "router")
		return "tls_cert_file = \"tls.pem\"\ntls_key_file = \"tls.key\"\n", fmt.Sprintf("[kv_cache]\nresp = %q\nhyperpod = %q\n"+
			"segment = %q\nmax_bytes = 16777216\nspill_dir = \"spilled\"\nspill_bytes = 268435456\n[lmcache]\npull = %q\nreply = %q\n"+
			"heartbeat = %q\n", at(0), at(1), segment, at(2), at(3), at(4))
	})
	t.Cleanup(func() {
		_ = os.Remove("/dev/shm/" + segment)
		_ = os.Remove("/dev/shm/." + segment + ".warmpath")
	})
	s.client = strings.Replace(s.client, "http:", "https:", 1)
	ask := func() *redis.Client {
		c := redis.NewClient(&redis.Options{Addr: at(0), MaxRetries: 20, MaxRetryBackoff: 100 * time.Millisecond})
		t.Cleanup(func() { c.Close() })
		return c
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	value := strings.Repeat("v", 1<<20)
	const values = 24 // more than fits into memory: the first are on the disk
	old := ask()
	for i := range values {
		if err := old.Set(ctx, fmt.Sprint("key", i), value, 0).Err(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Millisecond) // the disk's queue is a sixteenth of the memory
	}
	client := &http.Client{Timeout: patience, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	answered := func() bool {
		r, err := client.Post(s.client+"/v1/completions", "application/json", strings.NewReader(`{"model":"sim","prompt":"x","max_tokens":1}`))
		if err != nil {
			return false
		}
		r.Body.Close()
		return r.StatusCode == 200
	}
	if !answered() {
		t.Fatal("no answer over TLS")
	}
	for n := range 2 {
		before := s.pid
		if code, text := s.upgrade(""); code != 0 || s.pid == before {
			t.Fatalf("upgrade %d: exit %d: %s\n%s", n, code, text, read(t, s.log))
		}
		if !answered() {
			t.Errorf("after upgrade %d: no answer over TLS", n)
		}
		s.says("the KV cache was taken over", n+1)
		found := 0
		now := ask()
		for i := range values {
			if v, err := now.Get(ctx, fmt.Sprint("key", i)).Result(); err == nil && v == value {
				found++
			}
		}
		if found < values/4 {
			t.Errorf("after upgrade %d: %d of %d values are there, of those that were spilled", n, found, values)
		}
		for i := range 5 {
			connects(t, at(i))
		}
	}
	if text := read(t, s.log); strings.Contains(text, "level=ERROR") {
		t.Errorf("the log has errors:\n%s", text)
	}
}

// where returns the worker that a session's request goes to.
func (s *site) where(session string) string {
	s.t.Helper()
	r, err := http.NewRequest("POST", s.client+"/v1/completions", strings.NewReader(`{"model":"sim","prompt":"x","max_tokens":1}`))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Session-Id", session)
	r.Header.Set("X-Warmpath-Explain", "json")
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer a.Body.Close()
	var d struct{ Worker string }
	if err := json.Unmarshal([]byte(a.Header.Get("X-Warmpath-Decision")), &d); err != nil || a.StatusCode != 200 {
		s.t.Fatalf("%d %v %v", a.StatusCode, a.Header, err)
	}
	return d.Worker
}

// TestUpgradeKeepsSessionsInRedis: the new process sends a session that the old one bound to the session's worker.
func TestUpgradeKeepsSessionsInRedis(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("redis-server"); err != nil && os.Getenv("CI") == "" {
		t.Skip("no redis-server on this machine")
	}
	port := porttest.Row(t, 1)
	second := fmt.Sprintf("127.0.0.1:%d", port)
	s := newSiteWith(t, "1000", func(dir string) (server, tables string) {
		warmpath(t, dir, "sim --listen "+second+" --speed 1000")
		socket := filepath.Join(dir, "redis")
		launch(t, dir, "redis-server --port 0 --save '' --unixsocket "+socket)
		for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
			if conn, err := net.Dial("unix", socket); err == nil {
				conn.Close()
				break
			} else if time.Now().After(end) {
				t.Fatal(err)
			}
		}
		return "", "[[pools.workers]]\nurl = \"http://" + second + "\"\n[cache]\nredis = \"unix://" + socket + "\"\n[history]\nredis = \"off\"\n[sessions]\nbind = \"always\"\n"
	})
	s.says(`msg="worker up"`, 2)
	bound := map[string]string{}
	for i := range 20 {
		id := fmt.Sprint("s", i)
		bound[id] = s.where(id)
	}
	if code, text := s.upgrade(""); code != 0 {
		t.Fatalf("exit %d: %s\n%s", code, text, read(t, s.log))
	}
	for id, worker := range bound {
		if now := s.where(id); now != worker {
			t.Errorf("session %s was at %s and is at %s after the upgrade", id, worker, now)
		}
	}
}

// connects fails the test unless a process listens there.
func connects(t *testing.T, addr string) {
	t.Helper()
	conn, err := net.DialTimeout("tcp", addr, patience)
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
}
