package daemon

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/warmpath/warmpath/daemon/lab/redistest"
)

// TestAPushReachesTheOtherRouters: those that share a history by a secret of the operator's own, also one that starts
// later. What is not signed by the secret is no module, and a router without the secret takes and gives none.
func TestAPushReachesTheOtherRouters(t *testing.T) {
	t.Parallel()
	redisURL := redistest.Start(t).URL()
	secret := filepath.Join(t.TempDir(), "secret")
	write(t, secret, "a-secret-of-all-routers")
	router := func(secret, more string) (*running, string) {
		t.Helper()
		text, dir := withModules(t, "roundrobin", 1)
		return start(t, text+fmt.Sprintf("[history]\nredis = %q\nsecret_file = %q\n%s", redisURL, secret, more), 1), dir
	}
	a, _ := router(secret, "")
	_, atB := router(secret, "[strategies.mine]\nallow = ['kv']\n")
	apart, atApart := router("", "")
	first, second := countingModule(t, ""), countingModule(t, " ")
	stands := func(dir, module string) func() bool {
		return func() bool {
			b, err := os.ReadFile(filepath.Join(dir, "mine.wasm"))
			return err == nil && string(b) == module
		}
	}
	if s := a.admin("PUT", "/api/v1/strategies/mine", first); s.status != 200 || !strings.Contains(s.body, "other routers of the history have it within seconds") {
		t.Fatalf("%d %s", s.status, s.body)
	}
	eventually(t, "b has it", stands(atB, first))
	later, atLater := router(secret, "")
	eventually(t, "one that starts later has it", stands(atLater, first))
	eventually(t, "it takes the next version", func() bool { // and not while it loads the other
		return later.admin("PUT", "/api/v1/strategies/mine", second).status == 200
	})
	eventually(t, "b has the next version", stands(atB, second))

	// One that is signed by nobody, and one that no router would take.
	o, err := redis.ParseURL(redisURL)
	if err != nil {
		t.Fatal(err)
	}
	c := redis.NewClient(o)
	defer c.Close()
	lines := c.Keys(context.Background(), "*history-modules").Val()
	if len(lines) != 1 {
		t.Fatalf("keys: %q", lines)
	}
	line := c.HGet(context.Background(), lines[0], "mine").Val()
	module := strings.TrimSuffix(lines[0], "s") + "/mine"
	c.Set(context.Background(), module, first, 0)
	forged := fmt.Sprintf("%d %x %s", time.Now().Add(time.Hour).UnixMilli(), sha256.Sum256([]byte(first)), strings.Fields(line)[2])
	c.HSet(context.Background(), lines[0], "mine", forged)
	if s := apart.admin("PUT", "/api/v1/strategies/theirs", first); s.status != 200 || !strings.Contains(s.body, "set history.secret_file") {
		t.Errorf("%d %s", s.status, s.body)
	}
	time.Sleep(5 * time.Second)
	if !stands(atB, second)() {
		t.Error("b has taken a module that no router has signed")
	}
	for dir, name := range map[string]string{atApart: "mine.wasm", atB: "theirs.wasm"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			t.Errorf("%s went from or to a router without the secret", name)
		}
	}
	if s := a.admin("DELETE", "/api/v1/strategies/mine", ""); s.status != 200 && s.status != 204 {
		t.Errorf("%d %s", s.status, s.body)
	}
	if n := c.HLen(context.Background(), lines[0]).Val(); n != 0 {
		t.Errorf("%d are still announced", n)
	}
}
