package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/admin/operator"
	"github.com/warmpath/warmpath/daemon/lab/porttest"
)

// keeper is a daemon with a KV cache, whose admin listener requires a token.
type keeper struct {
	*testing.T
	dir, admin string
	resp       net.Conn
}

func startKeeper(t *testing.T) *keeper {
	port := porttest.Row(t, 3)
	k := &keeper{T: t, dir: workplace(t), admin: fmt.Sprintf("127.0.0.1:%d", port+1)}
	write(t, filepath.Join(k.dir, "token"), "a secret of ours\n")
	write(t, filepath.Join(k.dir, "warmpath.toml"), fmt.Sprintf(`[server]
listen = "127.0.0.1:%d"
admin = "%s"
admin_token_file = "token"
[kv_cache]
resp = "127.0.0.1:%d"
max_bytes = 67108864
[[pools]]
[[pools.workers]]
url = "http://127.0.0.1:1"
`, port, k.admin, port+2))
	p := warmpath(t, k.dir, "serve --config warmpath.toml")
	p.eventually("the KV cache's door", func() (ok bool) {
		var err error
		k.resp, err = net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port+2))
		return err == nil
	})
	p.eventually("the admin listener", func() bool {
		resp, err := http.Get("http://" + k.admin + "/health")
		if err == nil {
			resp.Body.Close()
		}
		return err == nil
	})
	t.Cleanup(func() { k.resp.Close(); p.stop() })
	k.resp.SetDeadline(time.Now().Add(time.Minute))
	return k
}

func (k *keeper) set(key, value string, more ...string) {
	k.Helper()
	words := append([]string{"SET", key, value}, more...)
	fmt.Fprintf(k.resp, "*%d\r\n", len(words))
	for _, w := range words {
		fmt.Fprintf(k.resp, "$%d\r\n%s\r\n", len(w), w)
	}
	answer := make([]byte, 5)
	if _, err := k.resp.Read(answer); err != nil || string(answer) != "+OK\r\n" {
		k.Fatalf("SET answered %q, %v", answer, err)
	}
}

// run runs a cache command, which must succeed.
func (k *keeper) run(args string) string {
	k.Helper()
	p := warmpath(k.T, k.dir, "cache "+args+" --token-file token --admin "+k.admin)
	p.succeed()
	return p.out.String()
}

// fails runs a command that must fail, with the reason in want.
func (k *keeper) fails(args, want string) {
	k.Helper()
	p := warmpath(k.T, k.dir, "cache "+args)
	if code := p.end(); code != 1 || !strings.Contains(p.String(), want) {
		k.Errorf("%s: exit %d, %s; want 1 and %q", args, code, p, want)
	}
}

// TestCache runs every cache command against a real daemon, and empties its KV cache.
func TestCache(t *testing.T) {
	t.Parallel()
	k := startKeeper(t)
	value := bytes.Repeat([]byte("kv"), 150_000)
	k.set("org/m@1@0@a1@half", string(value))
	k.set("org/m@1@0@a2@half", string(value), "PX", "100000")
	k.set("a\x07lm b\xff", "small")
	for i := range 1200 {
		k.set(fmt.Sprintf("notes/%04d", i), "x")
	}

	if got := k.run("stat --prefix resp/0/org/"); !strings.Contains(got, "l1    1203") || !strings.Contains(got, "room for ") ||
		!strings.Contains(got, "org/m  1172 at 256 tokens a value") || !strings.Contains(got, "chunk_size") ||
		!strings.Contains(got, `2 keys of 600000 bytes begin with "resp/0/org/"`) {
		t.Errorf("stat:\n%s", got)
	}
	var s operator.CacheState
	if err := json.Unmarshal([]byte(k.run("stat --json")), &s); err != nil || s.Puts != 1203 || !s.Open || s.Prefix != nil ||
		len(s.Tiers) != 1 || s.Tiers[0].Values != 1203 || s.Tokens.Tokens < 1 {
		t.Errorf("stat: %+v, %v", s, err)
	}
	got := k.run("ls --limit 3")
	if lines := strings.Split(got, "\n"); len(lines) != 6 || !strings.HasSuffix(lines[1], "resp/0/a%07lm%20b%FF") ||
		!strings.Contains(lines[3], "resp/0/notes/0001") || !strings.Contains(got, "--after 'resp/0/notes/0001'") {
		t.Errorf("ls:\n%s", got)
	}
	got = k.run("ls --limit 0 --json --prefix resp/0/notes/ --after resp/0/notes/0009")
	if n := strings.Count(got, "\n"); n != 1190 || !strings.HasPrefix(got, `{"key":"resp/0/notes/0010","size":1,"tiers":["l1"]}`) {
		t.Errorf("ls --json: %d lines, %.100s", n, got)
	}
	got = k.run("get resp/0/a%07lm%20b%FF")
	if !strings.Contains(got, "bytes    5") || !strings.Contains(got, "ends in  -") {
		t.Errorf("get:\n%s", got)
	}
	if got := k.run("get resp/0/org/m@1@0@a2@half"); !strings.Contains(got, "model    org/m") || !strings.Contains(got, "1m") {
		t.Errorf("get:\n%s", got)
	}
	k.run("get resp/0/org/m@1@0@a1@half --output value")
	if b, err := os.ReadFile(filepath.Join(k.dir, "value")); err != nil || !bytes.Equal(b, value) {
		t.Errorf("the value has %d bytes, %v", len(b), err)
	}
	if info, err := os.Stat(filepath.Join(k.dir, "value")); err != nil || info.Mode() != 0o600 {
		t.Errorf("the file is open to others: %v, %v", info.Mode(), err)
	}
	k.stays()

	if got := k.run("del resp/0/org/m@1@0@a1@half resp/0/none"); got != "deleted 1\n" {
		t.Errorf("del: %s", got)
	}
	if got := k.run("flush --prefix resp/0/org/"); got != "deleted 1\n" {
		t.Errorf("flush: %s", got)
	}
	if got := k.run("flush --json"); got != "{\"deleted\":1201}\n" {
		t.Errorf("flush: %s", got)
	}
	if got := k.run("ls --json"); got != "" {
		t.Errorf("left after flush: %s", got)
	}
}

// stays checks what the commands must not do.
func (k *keeper) stays() {
	own := " --token-file token --admin " + k.admin
	k.fails("get resp/0/none"+own, "no such key")
	k.fails("get resp/0/notes/000"+own, "no such key")
	k.fails("get resp/0/none --output value"+own, "404")
	k.fails("get resp/0/a%2"+own, "%")
	k.fails("ls --prefix resp/0/a%2"+own, "%25")
	k.fails("ls --limit -1"+own, "limit")
	k.fails("flush --admin "+k.admin, "wants its token")
	k.fails("get notes"+own, "begin with resp/")
	p := warmpath(k.T, k.dir, "cache flush --prefix resp/0"+own)
	if p.end() != 1 || strings.Contains(p.String(), "were deleted") {
		k.Errorf("a flush that deletes nothing says: %s", p)
	}
	if p := warmpath(k.T, k.dir, "cache del"+own); p.end() != 2 || !strings.Contains(p.String(), "arg") {
		k.Errorf("del without a key: %s", p)
	}
	for _, path := range []string{"keys", "keys?key=a&prefix=b"} {
		req, err := http.NewRequest("DELETE", "http://"+k.admin+"/api/v1/cache/"+path, nil)
		if err != nil {
			k.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer a secret of ours")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			k.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != 400 {
			k.Errorf("DELETE %s: %s; want 400", path, resp.Status)
		}
	}
}
