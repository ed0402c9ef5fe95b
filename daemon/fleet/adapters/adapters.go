// Package adapters loads LoRA adapters at the workers of a pool when requests want them, by vLLM's own calls.
//
// An adapter is loaded where its first request is sent, once however many requests wait for it, and the wait is
// bounded. What a worker refuses is not asked for again for a while, so that nonsense costs no worker more than a call
// each ten seconds. A worker has at most Config.Max adapters, so a load waits in a line until it gets a slot (line.go).
// The idle adapters that were not used for the longest time are unloaded for it. A load that fails leaves its slot to
// the next one, so a flood of wrong names unloads one adapter.
//
// A name becomes part of a path. It must be one segment of plain characters, and must not begin with a dot.
package adapters

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/worker"
)

const (
	loadWait  = time.Minute      // for a load: some 100 MB, from a disk or the network
	forgetFor = 10 * time.Second // a worker is not asked again for an adapter that it has refused
	maxMissed = 4096             // names that are kept of those, by worker
	maxAnswer = 16 << 10         // bytes of a worker's answer
	maxName   = 128              // bytes of an adapter's name
	nameMark  = "{name}"         // of Config.Source
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
	Own    Own    // the pool's models, which are not adapters
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

	mu    sync.Mutex       // guards loads and lines. The pool of workers takes its own lock below this one
	loads map[key]*load    // that wait for a slot, or are under way
	lines map[string]*line // by worker; none where no load waits

	refused sync.Mutex // guards missed. The pool of workers may hold its lock while it waits for this one
	missed  map[key]refusal
}

// Source is a Loader with the configuration of an epoch.
type Source struct {
	*Loader
	Config
}

// key names a load.
type key struct {
	worker string // its URL: data-parallel ranks have their adapters together
	name   string
}

// refusal is when a worker refused an adapter, and its id.
type refusal struct {
	at time.Time
	by string
}

// load is one load, from its first client on.
type load struct {
	key
	by      *Source
	at      *worker.Worker
	clients map[string]int // that wait for it, by their keys
	slot    bool           // it counts among the worker's adapters
	gone    []string       // adapters that were unloaded for it

	done chan struct{} // closed at its end
	err  error         // why it failed; read it after done
}

// Why an adapter is not there, beside worker.ErrNoAdapter: another worker may load it.
var (
	errFailed = errors.New("adapters: a worker did not load the adapter")
	ErrFull   = errors.New("adapters: a worker has no slot for the adapter")
)

// New makes a loader. Serve comes before its first load.
func New(pool string, log *slog.Logger, meter Meter) *Loader {
	return &Loader{pool: pool, log: log, meter: meter, loads: map[key]*load{}, lines: map[string]*line{},
		missed: map[key]refusal{}}
}

// Serve sets the workers at which adapters are loaded, and the client that calls them.
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

// Loads reports whether the worker at a URL may be asked now to load an adapter of that name; "" = one that has refused
// nothing. The pool of workers calls it with its lock held.
func (s *Source) Loads(url, name string) bool {
	return IsName(name) && !s.Own.Names(name) && !s.hasRefused(key{url, name})
}

func (l *Loader) hasRefused(k key) bool {
	l.refused.Lock()
	defer l.refused.Unlock()
	return time.Since(l.missed[k].at) < forgetFor
}

// Refused reports whether the worker at a URL has refused the adapter of that name since it had it last.
func (l *Loader) Refused(url, name string) bool {
	l.refused.Lock()
	defer l.refused.Unlock()
	_, has := l.missed[key{url, name}]
	return has
}

// Want is a request's wish for an adapter.
type Want struct {
	Name   string
	Caller string    // the name of the client's key
	Until  time.Time // when it waits no longer for a slot
}

// Load has the worker load the adapter, unless it lists it or the model is none, and waits for that: until then for a
// slot. Until release is called the adapter counts as used there, so that it is not unloaded.
func (s *Source) Load(ctx context.Context, w *worker.Worker, x Want) (release func(), err error) {
	release, lacks := s.workers.HoldAdapter(w, x.Name, time.Now())
	if !lacks {
		return release, nil
	}
	if err = s.await(ctx, w, &x); err != nil {
		release()
		return nil, err
	}
	return release, nil
}

// await waits for the load of an adapter.
func (s *Source) await(ctx context.Context, w *worker.Worker, x *Want) error {
	d, err := s.join(w, x.Name, x.Caller)
	if err != nil {
		return err
	}
	timer := time.NewTimer(time.Until(x.Until))
	defer timer.Stop()
	for {
		select {
		case <-d.done:
			return d.err
		case <-timer.C:
			if s.leave(d, x.Caller, true) {
				return ErrFull
			}
		case <-ctx.Done():
			s.leave(d, x.Caller, false)
			return ctx.Err()
		}
	}
}

// join begins a load, or joins the one of the same name.
func (s *Source) join(w *worker.Worker, name, caller string) (*load, error) {
	l, k := s.Loader, key{w.URL(), name}
	l.mu.Lock()
	defer l.mu.Unlock()
	d := l.loads[k]
	if d == nil {
		if !IsName(name) || l.hasRefused(k) {
			return nil, worker.ErrNoAdapter
		}
		d = &load{key: k, by: s, at: w, clients: map[string]int{}, done: make(chan struct{})}
		if !l.enter(d, caller) {
			return nil, ErrFull
		}
		l.loads[k] = d
	}
	d.clients[caller]++
	if !d.slot {
		l.advance(k.worker)
	}
	return d, nil
}

// run loads an adapter that has its slot. The clients that wanted it may leave: others may come for it.
func (d *load) run() {
	l := d.by.Loader
	ctx, stop := context.WithTimeout(context.Background(), loadWait)
	defer stop()
	for _, name := range d.gone {
		l.unload(ctx, d.at, name)
	}
	err := d.by.load(ctx, d.at, d.name, d.gone)
	if errors.Is(err, worker.ErrNoAdapter) {
		l.refuse(d.key, d.at.ID())
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.workers.FreeAdapterSlot(d.at, d.name)
	l.end(d, err)
	l.advance(d.worker)
}

// end gives a load's clients its result. l.mu is held.
func (l *Loader) end(d *load, err error) {
	d.err = err
	delete(l.loads, d.key)
	close(d.done)
}

// refuse notes that a worker has refused an adapter.
func (l *Loader) refuse(k key, by string) {
	l.refused.Lock()
	defer l.refused.Unlock()
	if len(l.missed) >= maxMissed {
		clear(l.missed) // a flood of names: those of a moment ago are asked for once more
	}
	l.missed[k] = refusal{time.Now(), by}
}

// Refusals returns what workers have refused in the last minute, as "ADAPTER by WORKER".
func (l *Loader) Refusals() (all []string) {
	l.refused.Lock()
	defer l.refused.Unlock()
	for k, r := range l.missed {
		if time.Since(r.at) < time.Minute {
			all = append(all, k.name+" by "+r.by)
		}
	}
	slices.Sort(all)
	return all
}

func (s *Source) load(ctx context.Context, w *worker.Worker, name string, gone []string) error {
	l := s.Loader
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
	l.refused.Lock()
	delete(l.missed, key{w.URL(), name})
	l.refused.Unlock()
	l.meter.AdapterCall(l.pool, "load", "ok")
	l.workers.AdapterLoaded(w, name, path, took)
	l.log.Info("adapter loaded", "worker", w.ID(), "adapter", name, "seconds", took.Seconds(), "unloaded", gone)
	return nil
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
