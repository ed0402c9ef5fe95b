package daemon

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/cache/lmcache"
	"github.com/warmpath/warmpath/cache/zmtp"
	"github.com/warmpath/warmpath/conf"
	"github.com/warmpath/warmpath/daemon/lab/vllmsim"
)

// The configuration's names of hashes are those that the room computes.
func TestLMCacheHashes(t *testing.T) {
	if !slices.Equal(conf.LMCacheHashes, lmcache.Algorithms()) {
		t.Errorf("conf knows %q; cache/lmcache %q", conf.LMCacheHashes, lmcache.Algorithms())
	}
}

// A worker's LMCache registers with the daemon and admits a chunk. The instance is matched to the worker by its id; page,
// metrics and log say so.
func TestLMCacheWorkerRegisters(t *testing.T) {
	t.Parallel()
	toml := settings("prefixaware", sims(t, 1, vllmsim.Config{}).URLs()...)
	r, lines := startLogged(t, "[lmcache]\npull = \"127.0.0.1:0\"\nreply = \"127.0.0.1:0\"\nheartbeat = \"127.0.0.1:0\"\n"+toml, 1)
	id := r.describe()[0].Workers[0].ID
	pull, reply, _, _ := r.lmcache.Addrs()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	dealer, err := zmtp.Dial(ctx, "tcp://"+reply, zmtp.Config{Kind: zmtp.DEALER})
	if err != nil {
		t.Fatal(err)
	}
	defer dealer.Close()
	hello := fmt.Sprintf(`{"type":"RegisterMsg","instance_id":%q,"worker_id":0,"ip":"127.0.0.1","port":7,"peer_init_url":null}`, id)
	if err := dealer.Send(nil, []byte(hello)); err != nil {
		t.Fatal(err)
	}
	if answer, err := dealer.Recv(); err != nil || !strings.Contains(string(answer[1]), "heartbeat_url") {
		t.Fatalf("the registration is answered %q, %v", answer, err)
	}
	push, err := zmtp.Dial(ctx, "tcp://"+pull, zmtp.Config{Kind: zmtp.PUSH})
	if err != nil {
		t.Fatal(err)
	}
	defer push.Close()
	if err := push.Send(fmt.Appendf(nil, `{"type":"BatchedKVOperationMsg","instance_id":%q,"worker_id":0,`+
		`"location":"LocalCPUBackend","operations":[{"op_type":"admit","key":-5,"seq_num":0}]}`, id)); err != nil {
		t.Fatal(err)
	}
	lines.wait(t, "Worker registered: "+id)
	page := func(path string) string {
		answer, err := http.Get("http://" + r.AdminAddr() + path)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		text, _ := io.ReadAll(answer.Body)
		return string(text)
	}
	eventually(t, "the chunk on the page", func() bool {
		return strings.Contains(page("/api/v1/lmcache"), `"LocalCPUBackend":1`)
	})
	if text := page("/metrics"); !strings.Contains(text, `warmpath_lmcache_keys{location="LocalCPUBackend"} 1`) ||
		!strings.Contains(text, `warmpath_lmcache_events_total{event="registered"} 1`) {
		t.Errorf("the metrics lack the chunk or the registration")
	}
	p := r.state.Load().pools[0]
	eventually(t, "the worker has its instance", func() bool {
		return p.roster.Instance(p.route.Workers.Stats(time.Now())[0].Slot) == id
	})
}

// Without [lmcache] there is no controller, and the page says so.
func TestNoLMCache(t *testing.T) {
	r := start(t, settings("prefixaware", sims(t, 1, vllmsim.Config{}).URLs()...), 1)
	if r.lmcache != nil || r.lmcache.Stats().On {
		t.Error("there is a controller")
	}
}

func TestLMCachePortInUse(t *testing.T) {
	r := start(t, "[lmcache]\npull = \"127.0.0.1:0\"\n"+settings("prefixaware", "http://127.0.0.1:1"), 0)
	pull, _, _, _ := r.lmcache.Addrs()
	c := *r.state.Load().conf
	c.LMCache.Pull = pull
	if d, err := New(&c, nil); err == nil || !strings.Contains(err.Error(), "pull") || !strings.Contains(err.Error(), pull) {
		if d != nil {
			d.Close()
		}
		t.Errorf("a second daemon on %s gives %v", pull, err)
	}
}
