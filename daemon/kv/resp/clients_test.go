package resp

import (
	"bytes"
	"context"
	"crypto/tls"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/warmpath/warmpath/daemon/lab/certtest"
	"github.com/warmpath/warmpath/daemon/lab/pyvenv"
)

// tool skips the test if a program is missing, except in CI, where a skip would hide the gap.
func tool(t *testing.T, name string, args ...string) *exec.Cmd {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		missing(t, name)
	}
	return exec.Command(name, args...)
}

func missing(t *testing.T, name string) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatalf("there is no %s: apt-get install redis-server", name)
	}
	t.Skipf("SKIPPED: there is no %s, so it is not tried against the door; apt-get install redis-server", name)
}

// TestGoRedis runs the router's own client library, in both protocols, with and without TLS and a password.
func TestGoRedis(t *testing.T) {
	for _, protocol := range []int{2, 3} {
		for _, secure := range []bool{false, true} {
			c, o := Config{}, &redis.Options{Protocol: protocol}
			if secure {
				pair := certtest.New(t, t.TempDir(), "door", "door").TLS
				c.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
				o.TLSConfig = &tls.Config{InsecureSkipVerify: true}
				c.Password, o.Password = "secret-password", "secret-password"
			}
			s, _ := serve(t, c)
			o.Addr = s.Addr()
			client := redis.NewClient(o)
			useGoRedis(t, client)
			client.Close()
		}
	}
}

func useGoRedis(t *testing.T, c *redis.Client) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	value := bytes.Repeat([]byte("0123456789abcdef"), 200_000)
	if err := c.Set(ctx, "big", value, time.Minute).Err(); err != nil {
		t.Fatal(err)
	}
	if got, err := c.Get(ctx, "big").Bytes(); err != nil || !bytes.Equal(got, value) {
		t.Errorf("GET: %d bytes, %v", len(got), err)
	}
	if err := c.Get(ctx, "nothing").Err(); err != redis.Nil {
		t.Errorf("GET of nothing: %v", err)
	}
	if n, err := c.Exists(ctx, "big", "nothing").Result(); n != 1 || err != nil {
		t.Errorf("EXISTS: %d, %v", n, err)
	}
	if d, err := c.TTL(ctx, "big").Result(); err != nil || d < 50*time.Second || d > time.Minute {
		t.Errorf("TTL: %v, %v", d, err)
	}
	pipe := c.Pipeline()
	for range 100 {
		pipe.Set(ctx, "small", "v", 0)
		pipe.Get(ctx, "small")
	}
	if _, err := pipe.Exec(ctx); err != nil {
		t.Errorf("a pipeline: %v", err)
	}
	if list, err := c.MGet(ctx, "small", "nothing").Result(); err != nil || len(list) != 2 || list[0] != "v" || list[1] != nil {
		t.Errorf("MGET: %v, %v", list, err)
	}
	if n, err := c.Del(ctx, "big", "small").Result(); n != 2 || err != nil {
		t.Errorf("DEL: %d, %v", n, err)
	}
}

func TestRedisTools(t *testing.T) {
	s, _ := serve(t, Config{})
	_, port, _ := net.SplitHostPort(s.Addr())
	f := func(want string, args ...string) {
		t.Helper()
		out, err := tool(t, "redis-cli", append([]string{"-p", port}, args...)...).CombinedOutput()
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("redis-cli %q: %s, %v; want %q", args, out, err, want)
		}
	}
	f("OK", "SET", "k", "v v")
	f("v v", "GET", "k")
	f("1", "EXISTS", "k")
	f("redis_version", "INFO")
	f("v v", "-3", "GET", "k")
	out, err := tool(t, "redis-benchmark", "-p", port, "-t", "set,get", "-n", "2000", "-d", "10000", "-c", "8", "-P", "4",
		"-q").CombinedOutput()
	if text := string(out); err != nil || !strings.Contains(text, "SET:") || !strings.Contains(text, "GET:") ||
		strings.Contains(text, "ERR") {
		t.Errorf("redis-benchmark: %s, %v", out, err)
	}
}

// redisPy does what LMCache does through redis-py, whose version chooses the protocol.
const redisPy = `
import sys, redis
c = redis.Redis(host="127.0.0.1", port=int(sys.argv[1]), socket_timeout=20)
v = bytes(range(256)) * 8000
assert c.set("m@1@0@abkv_bytes", v) is True
assert c.set("m@1@0@abmetadata", b"\x00" * 28) is True
assert c.exists("m@1@0@abmetadata") == 1
assert c.get("m@1@0@abkv_bytes") == v
assert c.get("nothing") is None
assert c.delete("m@1@0@abkv_bytes") == 1
print("ok", redis.__version__)
`

func TestRedisPy(t *testing.T) {
	python := pyvenv.Python(t, "../../../.cache/resp", "testdata/requirements.txt", "redis-py is not tried against the door")
	s, _ := serve(t, Config{})
	_, port, _ := net.SplitHostPort(s.Addr())
	out, err := exec.Command(python, "-c", redisPy, port).CombinedOutput()
	if err != nil || !strings.HasPrefix(string(out), "ok") {
		t.Errorf("redis-py: %s, %v", out, err)
	}
	t.Logf("redis-py: %s", out)
}
