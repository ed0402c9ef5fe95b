package catalogue

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/request/epoch"
	"github.com/warmpath/warmpath/daemon/request/message"
	"github.com/warmpath/warmpath/daemon/request/names"
	"github.com/warmpath/warmpath/daemon/request/route"
	"github.com/warmpath/warmpath/daemon/transport/gate"
)

// scene is an epoch with one pool of one worker.
type scene struct {
	epoch   *epoch.Epoch
	workers *worker.Pool
	number  uint64 // of the worker, for what a prober reports
}

// Watch learns the number. The rest of worker.Watcher does nothing.
func (s *scene) Watch(id uint64, _, _ string) { s.number = id }
func (s *scene) WatchHealth(uint64)           {}
func (s *scene) Unwatch(uint64)               {}
func (s *scene) CheckSoon(uint64)             {}
func (s *scene) ScrapeSoon(uint64)            {}
func (s *scene) ListSoon(uint64)              {}

// every is the pattern "*".
type every struct{}

func (every) Serves(string) bool { return true }
func (every) Names(string) bool  { return false }

func newScene() *scene {
	s := &scene{}
	p := &epoch.Pool{Patterns: every{}}
	p.Pool = route.New(route.Config{Name: "p", Began: time.Now(), Workers: worker.Config{Watcher: s,
		Workers: []worker.Spec{{ID: "w0", URL: "http://127.0.0.1:1"}}}})
	s.epoch, s.workers = &epoch.Epoch{Pools: []*epoch.Pool{p}}, p.Workers
	p.Workers.Healthy(s.number, time.Now())
	return s
}

// TestCatalogue: a page is made once for all who may see the same, and anew when the workers list other models, or the
// epoch is another.
func TestCatalogue(t *testing.T) {
	s := newScene()
	s.epoch.Names = names.New([]names.Alias{{Name: "alias", Targets: []names.Target{{Model: "none", Weight: 1}, {Model: "sim", Weight: 1}}}})
	keys := gate.NewKeys([]gate.Key{{Name: "a", Secret: "a", Models: []string{"*"}}, {Name: "b", Secret: "b", Models: []string{"*"}},
		{Name: "c", Secret: "c", Models: []string{"other"}}})
	var c Catalogue
	in := func(key string) *message.Inbound {
		return &message.Inbound{Epoch: s.epoch, Caller: keys.Named(key)}
	}
	page := func(key string) []byte { return c.page(in(key)) }
	list := func(ids ...string) {
		var entries []json.RawMessage
		for _, id := range ids {
			entries = append(entries, json.RawMessage(`{"id":"`+id+`","created":7}`))
		}
		s.workers.Listed(s.number, ids, entries)
	}
	list("sim")
	first := page("a")
	if got := string(first); got != `{"object":"list","data":[{"id":"sim","created":7},{"created":7,"id":"alias"}]}` {
		t.Errorf("%s", got)
	}
	list("sim") // again
	if again := page("b"); &again[0] != &first[0] {
		t.Error("a key that may see the same got a page of its own")
	}
	if got := string(page("c")); strings.Contains(got, "id") {
		t.Errorf("a key for another model got %s", got)
	}
	list("sim", "other")
	if got := string(page("c")); !strings.Contains(got, `"other"`) || strings.Contains(got, "sim") {
		t.Errorf("once it is listed: %s", got)
	}
	if got := string(page("a")); !strings.Contains(got, `"other"`) || c.entry(in("a"), "other") == nil || c.entry(in("a"), "none") != nil {
		t.Errorf("%s", got)
	}
	s.epoch = &epoch.Epoch{Pools: s.epoch.Pools}
	if got := string(page("a")); strings.Contains(got, "alias") {
		t.Errorf("after a reload without the alias: %s", got)
	}
}

// TestCataloguesAreKept: as many catalogues as are kept are made once each. One more caller's right makes room, and
// then they are kept as before.
func TestCataloguesAreKept(t *testing.T) {
	s := newScene()
	var all []gate.Key
	for i := range maxViews + 1 {
		name := fmt.Sprint(i)
		all = append(all, gate.Key{Name: name, Secret: name, Models: []string{"m" + name}})
	}
	keys := gate.NewKeys(all)
	var c Catalogue
	get := func(i int) *view {
		return c.get(&message.Inbound{Epoch: s.epoch, Caller: keys.Named(fmt.Sprint(i))})
	}
	made := make([]*view, maxViews)
	for i := range made {
		made[i] = get(i)
	}
	for i, l := range made {
		if get(i) != l {
			t.Errorf("the catalogue of caller %d was made again", i)
		}
	}
	last := get(maxViews)
	if get(maxViews) != last || get(0) == made[0] || len(c.of) > maxViews {
		t.Errorf("%d catalogues are kept", len(c.of))
	}
}
