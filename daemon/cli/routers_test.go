package cli

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/daemon/admin/operator"
	"github.com/warmpath/warmpath/daemon/lab/porttest"
	"github.com/warmpath/warmpath/daemon/lab/redistest"
)

// TestClientsKeepToARouter: nginx and HAProxy with the blocks of docs/routers.md send a session to one router, and
// requests without a name to all.
func TestClientsKeepToARouter(t *testing.T) {
	t.Parallel()
	var routers [2]string
	for i := range routers {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, i) }))
		t.Cleanup(s.Close)
		routers[i] = strings.TrimPrefix(s.URL, "http://")
	}
	addresses := strings.NewReplacer("router-a:8080", routers[0], "router-b:8080", routers[1])
	blocks := map[string]string{}
	for _, m := range fence.FindAllStringSubmatch(read(t, filepath.Join("..", "..", "docs", "routers.md")), -1) {
		blocks[m[1]] += addresses.Replace(m[2])
	}
	for name, c := range map[string]struct{ args, text string }{
		"nginx": {`-p . -e stderr -c c`, nginxHead + blocks["nginx"] + "server { listen %s; location / { proxy_pass http://warmpath; } }\n}\n"},
		"haproxy": {"-db -f c", "defaults\n    mode http\n    timeout connect 5s\n    timeout client 30s\n    timeout server 30s\n" +
			"frontend clients\n    bind %s\n    default_backend warmpath\n" + blocks["haproxy"]},
	} {
		t.Run(name, func(t *testing.T) {
			command, err := exec.LookPath(name)
			if err != nil {
				if os.Getenv("CI") != "" {
					t.Fatalf("there is no %s: apt-get install %s", name, name)
				}
				t.Skipf("SKIPPED: there is no %s, so its block of docs/routers.md is not tried; apt-get install %s", name, name)
			}
			dir, at := t.TempDir(), porttest.Address(t)
			write(t, filepath.Join(dir, "c"), fmt.Sprintf(c.text, at))
			p := launch(t, dir, command+" "+c.args)
			ask := func(header, value string) string {
				r, _ := http.NewRequest("GET", "http://"+at, nil)
				r.Header.Set(header, value)
				a, err := http.DefaultClient.Do(r)
				if err != nil {
					return err.Error()
				}
				defer a.Body.Close()
				var by string
				fmt.Fscan(a.Body, &by)
				return by
			}
			p.eventually("it serves", func() bool { return len(ask("X-Session-Id", "first")) == 1 })
			sessions, others := map[string]int{}, map[string]int{}
			for i := range 40 {
				id := fmt.Sprint("session ", i)
				by := ask("X-Session-Id", id)
				sessions[by]++
				others[ask("X-None", "")]++
				if again := ask("X-Session-Id", id); again != by {
					t.Errorf("%q went to router %s, and then to %s", id, by, again)
				}
			}
			for _, by := range []string{"0", "1"} {
				if sessions[by] < 5 || others[by] < 5 {
					t.Errorf("router %s has %d of 40 sessions, and %d of 40 requests without a name", by, sessions[by], others[by])
				}
			}
		})
	}
}

// TestUpgradeKeepsTheSubset: the new process uses the workers that the old one used. Sessions stay at their workers, also
// at those outside of the subset, which have no other requests.
func TestUpgradeKeepsTheSubset(t *testing.T) {
	t.Parallel()
	const workers, sessions = 12, 16
	port, redis := porttest.Row(t, workers), redistest.Start(t).URL()
	s := newSiteWith(t, "1000", func(dir string) (server, _ string) {
		warmpath(t, dir, fmt.Sprintf("sim --listen 127.0.0.1:%d --count %d --speed 1000", port, workers))
		server = "[[pools]]\nname = \"large\"\nmodels = [\"sim\"]\nsubset = 10\n"
		for i := range workers {
			server += fmt.Sprintf("[[pools.workers]]\nid = \"s%d\"\nurl = \"http://127.0.0.1:%d\"\n", i, port+i)
		}
		return fmt.Sprintf("[sessions]\nbind = \"always\"\n[cache]\nredis = %q\n[history]\nredis = \"off\"\n", redis) + server, ""
	})
	s.says(`msg="worker up"`, 11)
	used := func() (subset, guests []string) {
		t.Helper()
		var pools []operator.PoolState
		if _, _, text := fetch("GET", "http://"+s.admin+"/api/v1/pools", ""); json.Unmarshal([]byte(text), &pools) != nil {
			t.Fatal(text)
		}
		for _, w := range pools[0].Workers {
			switch _, grown := pools[0].Subset.Grown[w.ID]; {
			case grown:
				guests = append(guests, w.ID)
			case w.State != operator.Outside:
				subset = append(subset, w.ID)
			}
		}
		slices.Sort(subset)
		return subset, guests
	}
	at := map[string]string{}
	for i := range sessions {
		id := fmt.Sprint("s", i)
		at[id] = s.where(id)
	}
	path := filepath.Join(s.dir, "a.toml")
	write(t, path, strings.Replace(read(t, path), "subset = 10", "subset = 3", 1))
	var before []string
	for i := range 2 {
		if code, text := s.upgrade(""); code != 0 {
			t.Fatalf("exit %d: %s\n%s", code, text, read(t, s.log))
		}
		for _, id := range slices.Sorted(maps.Keys(at)) {
			if now := s.where(id); now != at[id] {
				t.Errorf("upgrade %d: session %s was at %s, and is at %s", i, id, at[id], now)
			}
		}
		subset, guests := used()
		if len(subset) != 3 || len(guests) == 0 || i > 0 && !slices.Equal(subset, before) {
			t.Errorf("upgrade %d: the router uses %v, and for sessions %v; before it used %v", i, subset, guests, before)
		}
		before = subset
	}
}
