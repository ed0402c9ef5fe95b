package discover

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/warmpath/warmpath/conf"
	"github.com/warmpath/warmpath/daemon/lab/logtest"
)

// zone is a name server whose answers can change while it is asked.
type zone struct {
	mu    sync.Mutex
	addrs []string
	err   error
	asked int
}

func (n *zone) set(err error, addrs ...string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.addrs, n.err = addrs, err
}

func (n *zone) resolve(ctx context.Context, host string) ([]netip.Addr, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.asked++
	if host != "vllm.test" {
		return nil, fmt.Errorf("asked for %q", host)
	}
	if _, ok := ctx.Deadline(); !ok {
		return nil, errors.New("no deadline")
	}
	var found []netip.Addr
	for _, a := range n.addrs {
		found = append(found, netip.MustParseAddr(a))
	}
	return found, n.err
}

func urls(workers []conf.Worker) string {
	var all []string
	for _, w := range workers {
		all = append(all, strings.TrimPrefix(w.URL, "http://"))
	}
	return strings.Join(all, " ")
}

// discovery is what the daemon makes, with another resolver.
func discovery(log *slog.Logger, resolve Resolver) *Discovery[conf.Worker] {
	return New(Config[conf.Worker]{
		Log: log, Resolve: resolve, Format: format{}})
}

// format is that of the configuration's workers. It has none for pods.
type format struct{ Format[conf.Worker] }

func (format) URL(w conf.Worker) string { return w.URL }
func (format) AtURL(url string, prefiller bool) conf.Worker {
	w := conf.WorkerAt(url)
	if prefiller {
		w.Role = conf.RolePrefill
	}
	return w
}
func (format) ReadFile(path string) ([]conf.Worker, error) { return conf.LoadWorkers(path) }
func (format) Watch(ctx context.Context, files func() []string, changed func()) {
	conf.Watch(ctx, watchPoll, files, changed)
}

const watchPoll = 250 * time.Millisecond

type sources = Sources[conf.Worker]

// writeFile puts text in place of a file as tools do: beside it, then renamed over it.
func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

func TestDiscoveryUnion(t *testing.T) {
	path := filepath.Join(t.TempDir(), "workers.toml")
	writeFile(t, path, `
[[workers]]
url = "http://10.0.0.2:8000"
id = "two"
kv_tokens = 5000
[[workers]]
url = "http://10.0.0.1:8000"
id = "again"
`)
	n := &zone{addrs: []string{"10.0.0.3", "fd00::1", "10.0.0.2", "::ffff:10.0.0.3", "0.0.0.0"}}
	d := discovery(slog.New(slog.DiscardHandler), n.resolve)
	got := d.Take(t.Context(), sources{File: path, Group: Group{Name: "vllm.test:8000"},
		Workers: []conf.Worker{{URL: "http://10.0.0.1:8000", ID: "one"}}})
	if want := "10.0.0.1:8000 10.0.0.2:8000 10.0.0.3:8000 [fd00::1]:8000"; urls(got) != want {
		t.Fatalf("workers: %s; want %s", urls(got), want)
	}
	if got[0].ID != "one" || got[1].ID != "two" || got[1].KVTokens != 5000 {
		t.Errorf("of a worker in two sources the later one was taken: %+v", got[:2])
	}
	if w := got[2]; w.ID != conf.DefaultID(w.URL) || w.MetricsURL != w.URL+"/metrics" || w.Weight != 1 {
		t.Errorf("found by name: %+v; want what the configuration completes", w)
	}
	got = d.Take(t.Context(), sources{Group: Group{Name: "vllm.test:9000"}})
	if want := "10.0.0.2:9000 10.0.0.3:9000 [fd00::1]:9000"; urls(got) != want {
		t.Errorf("another name and no file: %s; want %s", urls(got), want)
	}
	if got = d.Take(t.Context(), sources{}); len(got) != 0 {
		t.Errorf("without sources: %s", urls(got))
	}
}

// A worker that both groups give is a prefiller, and one of a list is what the list says.
func TestPrefillers(t *testing.T) {
	answers := map[string][]string{"all.test": {"10.0.0.1", "10.0.0.2", "10.0.0.3"}, "prefill.test": {"10.0.0.2", "10.0.0.3", "10.0.0.4"}}
	d := discovery(slog.New(slog.DiscardHandler), func(_ context.Context, host string) (found []netip.Addr, err error) {
		for _, a := range answers[host] {
			found = append(found, netip.MustParseAddr(a))
		}
		return found, nil
	})
	listed := conf.WorkerAt("http://10.0.0.3:80")
	var got []string
	for _, w := range d.Take(t.Context(), sources{Workers: []conf.Worker{listed}, Group: Group{Name: "all.test:80"},
		Prefillers: Group{Name: "prefill.test:80"}}) {
		got = append(got, strings.TrimPrefix(w.URL, "http://10.0.0.")+" "+w.RoleOf())
	}
	if want := "3:80 , 2:80 prefill, 4:80 prefill, 1:80 "; strings.Join(got, ", ") != want {
		t.Errorf("%q; want %s", got, want)
	}
}

// TestDiscoveryName follows a name over ten minutes of a fleet's life.
func TestDiscoveryName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		n := &zone{addrs: []string{"10.0.0.1"}}
		changes := 0
		var last string
		d := discovery(slog.New(slog.NewTextHandler(&log, nil)), n.resolve)
		d.Take(t.Context(), sources{Group: Group{Name: "vllm.test:80"}})
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { d.Run(ctx, func(w []conf.Worker) { changes++; last = urls(w) }); close(done) }()
		expect := func(wait time.Duration, wantChanges int, want string) {
			t.Helper()
			time.Sleep(wait)
			synctest.Wait()
			if changes != wantChanges || last != want {
				t.Errorf("%d changes, workers %q; want %d, %q", changes, last, wantChanges, want)
			}
		}
		expect(time.Minute, 0, "")
		if n.asked < 10 || n.asked > 15 {
			t.Errorf("the name was asked %d times in a minute; want about 13", n.asked)
		}
		n.set(nil, "10.0.0.2", "10.0.0.1")
		expect(6*time.Second, 1, "10.0.0.1:80 10.0.0.2:80")
		n.set(nil, "10.0.0.1", "10.0.0.2") // in another order
		expect(time.Minute, 1, "10.0.0.1:80 10.0.0.2:80")
		n.set(errors.New("server misbehaving"))
		expect(time.Minute, 1, "10.0.0.1:80 10.0.0.2:80")
		n.set(nil) // no address
		expect(time.Minute, 1, "10.0.0.1:80 10.0.0.2:80")
		n.set(nil, "10.0.0.2")
		expect(6*time.Second, 2, "10.0.0.2:80")
		d.Take(t.Context(), sources{Group: Group{Name: "vllm.test:80"}, Workers: []conf.Worker{{URL: "http://10.0.0.3:80"}}})
		n.set(nil, "10.0.0.2", "10.0.0.3") // known by the configuration: no news
		expect(time.Minute, 2, "10.0.0.2:80")
		n.set(nil)
		expect(time.Minute, 2, "10.0.0.2:80")
		if got := strings.Count(log.String(), "workers_dns has no answer"); got != 2 {
			t.Errorf("%d lines for two episodes without an answer:\n%s", got, log.String())
		}
		stop()
		<-done
	})
}

// TestDiscoveryFile changes the file well, badly, and takes it away.
func TestDiscoveryFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "workers.toml")
	one := "[[workers]]\nurl = \"http://10.0.0.1:80\"\n"
	writeFile(t, path, one)
	log := new(logtest.Log)
	seen := make(chan string, 9)
	d := discovery(slog.New(slog.NewTextHandler(log, nil)), nil)
	if got := urls(d.Take(t.Context(), sources{File: path})); got != "10.0.0.1:80" {
		t.Fatalf("at first: %s", got)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { d.Run(ctx, func(w []conf.Worker) { seen <- urls(w) }); close(done) }()
	defer func() { stop(); <-done }()
	until := func(what string, ok func() bool) {
		t.Helper()
		for end := time.Now().Add(20 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("not in 20 s: %s", what)
			}
		}
	}
	next := func(want string) {
		t.Helper()
		until(want, func() bool { return len(seen) > 0 })
		if got := <-seen; got != want {
			t.Errorf("workers: %s; want %s", got, want)
		}
	}
	writeFile(t, path, one+"[[workers]]\nurl = \"http://10.0.0.2:80\"\n")
	next("10.0.0.1:80 10.0.0.2:80")
	writeFile(t, path, one+"[[workers]]\nurl = \"http://10.0.0.3:80\"\nwieght = 2\n")
	until("the wrong key and its line in the log", func() bool {
		return strings.Contains(log.String(), "workers.toml:5:") && strings.Contains(log.String(), "wieght")
	})
	if got := urls(d.Workers()); got != "10.0.0.1:80 10.0.0.2:80" {
		t.Errorf("after a wrong file: %s; want the workers as before", got)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	time.Sleep(3 * watchPoll)
	if got := urls(d.Workers()); got != "10.0.0.1:80 10.0.0.2:80" || len(seen) > 0 {
		t.Errorf("without the file: %s, %d changes; want the workers as before", got, len(seen))
	}
	writeFile(t, path, "[[workers]]\nurl = \"http://10.0.0.3:80\"\n")
	next("10.0.0.3:80")
}

// TestDiscoveryRaces takes and asks while run follows the name. It is made for -race.
func TestDiscoveryRaces(t *testing.T) {
	n := &zone{addrs: []string{"10.0.0.1"}}
	d := discovery(slog.New(slog.DiscardHandler), n.resolve)
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Go(func() { d.Run(ctx, func([]conf.Worker) {}) })
	for g := range 4 {
		all.Go(func() {
			for i := range 200 {
				n.set(nil, fmt.Sprintf("10.0.%d.%d", g, i))
				d.Take(t.Context(), sources{Group: Group{Name: "vllm.test:80"}})
				d.groups[1].name.ask(t.Context())
				if len(d.Workers()) != 1 {
					t.Error("a name with one address gives not one worker")
				}
			}
		})
	}
	time.AfterFunc(100*time.Millisecond, stop)
	all.Wait()
}
