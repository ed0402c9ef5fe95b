// Package adapters loads LoRA adapters at the workers of a pool when requests want them, by vLLM's own calls.
//
// An adapter is loaded where its first request is sent, once however many requests wait for it, and the wait is
// bounded. What a worker refuses is not asked for again for a while, so that nonsense costs no worker more than a call
// each ten seconds. A worker has at most Config.Max adapters: the idle one that was not used for the longest time is
// unloaded first. A load that fails leaves its room to the next one, so a flood of wrong names unloads one adapter.
//
// A name becomes part of a path. So it is one segment of plain characters, and never begins with a dot.
package adapters

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/worker"
)

const (
	loadWait  = time.Minute           // for a load: some 100 MB, from a disk or the network
	roomEvery = 50 * time.Millisecond // between two looks for an idle adapter
	forgetFor = 10 * time.Second      // an adapter is not asked for again that a worker has refused
	maxMissed = 4096                  // names that are kept of those
	maxAnswer = 16 << 10              // bytes of a worker's answer
	maxName   = 128                   // bytes of an adapter's name
	nameMark  = "{name}"              // of Config.Source
)

// The paths of vLLM's adapter calls.
const (
	LoadPath   = "/v1/load_lora_adapter"
	UnloadPath = "/v1/unload_lora_adapter"
)

// Needless reports whether a worker's answer to a call says that there was nothing to do: it has the adapter that was
// to be loaded, or lacks the one that was to be unloaded. vLLM answers 400 with such a text, and 404.
func Needless(path string, status int, answer []byte) bool {
	if path == UnloadPath {
		return status == http.StatusNotFound
	}
	return status == http.StatusBadRequest && strings.Contains(string(answer), "already")
}

// Config is where a pool's adapters are. The zero value is nowhere: nothing is loaded.
type Config struct {
	Source string // path at the workers, or what else vLLM takes, with {name} for the adapter's name
	Max    int    // at a worker at a time; 0 = no bound
	Own    Own    // the pool's models, which are no adapters
}

// Own knows the models that a pool names.
type Own interface{ Names(model string) bool }

// Poster posts to a worker.
type Poster interface {
	Order(ctx context.Context, url, path string, body []byte, limit int) (status int, answer []byte, err error)
}

// Meter counts the calls to workers, by their result: ok, refused or failed.
type Meter interface {
	AdapterCall(pool, call, result string)
}

// Loader loads the adapters of one pool. It is safe for concurrent use.
type Loader struct {
	pool    string
	log     *slog.Logger
	meter   Meter
	workers *worker.Pool
	poster  Poster

	mu     sync.Mutex           // guards all below. The pool of workers may hold its lock while it waits for this one
	loads  map[key]*load        // under way
	missed map[string]time.Time // adapters that a worker has refused
}

// Source is a Loader with the configuration of an epoch.
type Source struct {
	*Loader
	Config
}

// key names a load.
type key struct {
	worker uint64
	name   string
}

// load is one load under way.
type load struct {
	done chan struct{} // closed at its end
	err  error         // why it failed; read it after done
}

// errFailed is why an adapter is not there that another worker may load; worker.ErrNoAdapter that nobody has it.
var errFailed = errors.New("adapters: a worker did not load the adapter")

// New makes a loader. Serve comes before its first load.
func New(pool string, log *slog.Logger, meter Meter) *Loader {
	return &Loader{pool: pool, log: log, meter: meter, loads: map[key]*load{}, missed: map[string]time.Time{}}
}

// Serve sets at which workers adapters are loaded, and who calls them.
func (l *Loader) Serve(workers *worker.Pool, poster Poster) { l.workers, l.poster = workers, poster }

// By returns the loader with a configuration.
func (l *Loader) By(c Config) *Source { return &Source{Loader: l, Config: c} }

// IsName reports whether an adapter may have the name: it becomes a part of a path.
func IsName(name string) bool {
	if name == "" || len(name) > maxName || name[0] == '.' {
		return false
	}
	for _, c := range []byte(name) {
		switch {
		case c >= '0' && c <= '9', c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c == '-', c == '_', c == '.':
		default:
			return false
		}
	}
	return true
}

// Loads reports whether an adapter of that name may be loaded now. The pool of workers calls it with its lock held.
func (s *Source) Loads(name string) bool {
	l := s.Loader
	l.mu.Lock()
	defer l.mu.Unlock()
	return IsName(name) && !s.Own.Names(name) && time.Since(l.missed[name]) >= forgetFor
}

// Load has the worker load the adapter, unless it lists it or the model is none, and waits for that. Until release is
// called the adapter counts as used there, so that it is not unloaded.
func (s *Source) Load(ctx context.Context, w *worker.Worker, name string) (release func(), err error) {
	release, lacks := s.workers.HoldAdapter(w, name, time.Now())
	if !lacks {
		return release, nil
	}
	under := s.begin(w, name)
	select {
	case <-under.done:
		err = under.err
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil {
		release()
		return nil, err
	}
	return release, nil
}

// begin starts a load, or joins the one that is under way.
func (s *Source) begin(w *worker.Worker, name string) *load {
	l := s.Loader
	l.mu.Lock()
	defer l.mu.Unlock()
	k := key{w.Key(), name}
	if under := l.loads[k]; under != nil {
		return under
	}
	under := &load{done: make(chan struct{})}
	if !IsName(name) || time.Since(l.missed[name]) < forgetFor {
		under.err = worker.ErrNoAdapter
		close(under.done)
		return under
	}
	l.loads[k] = under
	go s.run(under, k, w)
	return under
}

// run loads an adapter. The client that wanted it may leave: others may wait for it too.
func (s *Source) run(under *load, k key, w *worker.Worker) {
	l := s.Loader
	ctx, stop := context.WithTimeout(context.Background(), loadWait)
	defer stop()
	under.err = s.load(ctx, w, k.name)
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.loads, k)
	if errors.Is(under.err, worker.ErrNoAdapter) {
		if len(l.missed) >= maxMissed {
			clear(l.missed) // a flood of names: those of a moment ago are asked for once more
		}
		l.missed[k.name] = time.Now()
	}
	close(under.done)
}

func (s *Source) load(ctx context.Context, w *worker.Worker, name string) error {
	l := s.Loader
	gone, err := l.makeRoom(ctx, w, name, s.Max)
	if err != nil {
		return err
	}
	began := time.Now()
	path := strings.ReplaceAll(s.Source, nameMark, name)
	body, _ := json.Marshal(struct {
		Name string `json:"lora_name"`
		Path string `json:"lora_path"`
	}{name, path})
	status, answer, err := l.poster.Order(ctx, w.URL(), LoadPath, body, maxAnswer)
	took := time.Since(began)
	had := Needless(LoadPath, status, answer)
	switch {
	case err != nil || status >= 500 || status == http.StatusTooManyRequests:
		l.meter.AdapterCall(l.pool, "load", "failed")
		l.log.Warn("an adapter was not loaded: the worker failed, or did not answer in time; look at its log",
			"worker", w.ID(), "adapter", name, "status", status, "error", err)
		return errFailed
	case status >= 300 && !had:
		l.meter.AdapterCall(l.pool, "load", "refused")
		l.log.Warn("an adapter was not loaded: the worker refuses it; look whether source of [pools.adapters] has it there, "+
			"and whether the worker runs with --enable-lora and VLLM_ALLOW_RUNTIME_LORA_UPDATING=1",
			"worker", w.ID(), "adapter", name, "status", status, "answer", cut(answer))
		return worker.ErrNoAdapter
	}
	if had {
		took = 0
	}
	l.meter.AdapterCall(l.pool, "load", "ok")
	l.workers.AdapterLoaded(w, name, path, took)
	l.log.Info("adapter loaded", "worker", w.ID(), "adapter", name, "seconds", took.Seconds(), "unloaded", gone)
	return nil
}

// makeRoom unloads an adapter if the worker has as many as it may have. It waits until one is idle, and returns its
// name.
func (l *Loader) makeRoom(ctx context.Context, w *worker.Worker, name string, most int) (gone string, err error) {
	for most > 0 {
		idle, ok := l.workers.DropIdleAdapter(w, name, most)
		if ok && idle == "" {
			return gone, nil
		}
		if ok {
			gone = idle
			l.unload(ctx, w, idle)
			continue
		}
		select {
		case <-time.After(roomEvery):
		case <-ctx.Done():
			return gone, fmt.Errorf("%w: all its adapters are in use", errFailed)
		}
	}
	return gone, nil
}

// unload unloads an adapter. If that fails, the worker's own list shows it again.
func (l *Loader) unload(ctx context.Context, w *worker.Worker, name string) {
	body, _ := json.Marshal(map[string]string{"lora_name": name})
	status, answer, err := l.poster.Order(ctx, w.URL(), UnloadPath, body, maxAnswer)
	if err != nil || status >= 300 && !Needless(UnloadPath, status, answer) {
		l.meter.AdapterCall(l.pool, "unload", "failed")
		l.log.Warn("an adapter was not unloaded: look at the worker's log", "worker", w.ID(), "adapter", name,
			"status", status, "error", err)
		return
	}
	l.meter.AdapterCall(l.pool, "unload", "ok")
}

// cut returns the beginning of an answer, for a log.
func cut(text []byte) string { return string(text[:min(len(text), 200)]) }
