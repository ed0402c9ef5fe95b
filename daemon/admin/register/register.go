package register

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/warmpath/warmpath/conf"
)

// Most bounds the registered workers of all pools: more are a program that does not stop.
const Most = 1024

// Process is the daemon whose workers these are.
type Process interface {
	// Configuration is the one that was loaded last.
	Configuration() *conf.Config
	// Found returns the workers that all sources of each pool give now.
	Found() map[string][]conf.Worker
	// Refind makes the workers that the sources of a pool give now those of the pool.
	Refind(pool string)
}

// Entry is a registered worker.
type Entry struct {
	Pool string         `json:"pool"`
	Keys map[string]any `json:"keys"` // as [[pools.workers]] has them
	TTL  time.Duration  `json:"ttl"`  // 0 = it stays until it is removed
	At   time.Time      `json:"at"`   // of its registration
	Ends time.Time      `json:"-"`    // unless it is renewed; zero: TTL is 0

	Worker conf.Worker `json:"-"` // of Keys
}

// Register holds the registered workers. It is safe for concurrent use.
type Register struct {
	path string // "" = a restart forgets them
	log  *slog.Logger

	changing sync.Mutex // one change at a time; held while other sources are asked

	mu      sync.Mutex // guards all below
	entries []Entry    // in the order of their registration
	held    bool       // a new process has read the file
}

// Open reads the registrations beside a state file, "" for none.
func Open(c *conf.Config, log *slog.Logger) *Register {
	r := &Register{log: log}
	if c.Server.StateFile == "" {
		return r
	}
	r.path = c.Server.StateFile + ".workers"
	text, err := os.ReadFile(r.path)
	if errors.Is(err, fs.ErrNotExist) {
		return r
	}
	var all []Entry
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	if err != nil {
		log.Error("the registered workers cannot be read: register them again", "file", r.path, "error", err)
		return r
	}
	for _, e := range all {
		p := poolOf(c, e.Pool)
		if p == nil {
			log.Warn("a registered worker is forgotten, since its pool is not there", "pool", e.Pool, "keys", e.Keys["id"])
			continue
		}
		e.Keys = integers(e.Keys)
		e.Worker, err = c.ParseWorker(p, e.Keys)
		if err != nil {
			log.Warn("a registered worker is forgotten, since it is not accepted any more: register it again", "pool", e.Pool,
				"worker", e.Keys["id"], "error", err)
			continue
		}
		e.renew(time.Now())
		r.entries = append(r.entries, e)
	}
	return r
}

func (e *Entry) renew(now time.Time) {
	if e.TTL > 0 {
		e.Ends = now.Add(e.TTL)
	}
}

// integers makes integers of JSON's numbers that are whole, and leaves out what is null: TOML has types for numbers,
// and no null.
func integers(keys map[string]any) map[string]any {
	all := map[string]any{}
	for name, value := range keys {
		switch v := value.(type) {
		case nil:
			continue
		case float64:
			if n := int64(v); float64(n) == v {
				value = n
			}
		}
		all[name] = value
	}
	return all
}

func poolOf(c *conf.Config, name string) *conf.Pool {
	if i := slices.IndexFunc(c.Pools, func(p conf.Pool) bool { return p.Name == name }); i >= 0 {
		return &c.Pools[i]
	}
	return nil
}

// Workers returns the registered workers of a pool.
func (r *Register) Workers(pool string) (all []conf.Worker) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.entries {
		if r.entries[i].Pool == pool {
			all = append(all, r.entries[i].Worker)
		}
	}
	return all
}

// Entries returns all registrations.
func (r *Register) Entries() []Entry {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.entries)
}

// Kept reports whether a restart keeps the registrations.
func (r *Register) Kept() bool { return r.path != "" }

// Add registers a worker in a pool, or renews its registration.
func (r *Register) Add(p Process, pool string, keys map[string]any, ttl time.Duration) (Entry, error) {
	r.changing.Lock()
	defer r.changing.Unlock()
	c := p.Configuration()
	of := poolOf(c, pool)
	if of == nil {
		return Entry{}, refuse(Unknown, "there is no pool %.80q; GET /api/v1/pools lists them", pool)
	}
	now := time.Now()
	e := Entry{Pool: pool, Keys: integers(keys), TTL: ttl, At: now}
	var err error
	e.Worker, err = c.ParseWorker(of, e.Keys)
	if err != nil {
		return Entry{}, refuse(Wrong, "%v", err)
	}
	e.Keys["id"] = e.Worker.ID
	e.renew(now)
	renewed, err := r.again(&e, now)
	if err != nil {
		return e, err
	}
	found := p.Found()
	if renewed && isFirst(&e, found[pool]) {
		return e, nil
	}
	if err := fits(&e, found); err != nil || renewed { // the file may have got another one since
		return e, err
	}
	if err := r.change(func(all []Entry) []Entry { return append(all, e) }); err != nil {
		return Entry{}, err
	}
	r.log.Info("a worker has registered", "pool", pool, "worker", e.Worker.ID, "ttl", ttl)
	p.Refind(pool)
	return e, nil
}

// again renews the registration of e's worker if there is one.
func (r *Register) again(e *Entry, now time.Time) (renewed bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	i := slices.IndexFunc(r.entries, func(o Entry) bool { return o.Pool == e.Pool && o.Worker.ID == e.Worker.ID })
	switch {
	case r.held:
		return false, errHeld
	case i >= 0:
		was := &r.entries[i]
		if differs := differences(was, e); len(differs) > 0 {
			return false, refuse(Conflict, "worker %s of pool %s is registered already, with another %s; DELETE it first, or "+
				"give this one another id", e.Worker.ID, e.Pool, strings.Join(differs, ", "))
		}
		was.renew(now)
		*e = *was
		return true, nil
	case len(r.entries) >= Most:
		return false, refuse(Full, "%d registered workers are there, as many as this router takes; DELETE those that have "+
			"ended, or register with a ttl", Most)
	}
	return false, nil
}

// differences names the keys in which two registrations differ.
func differences(a, b *Entry) (names []string) {
	if a.TTL != b.TTL {
		names = append(names, "ttl")
	}
	was, is := reflect.ValueOf(a.Worker), reflect.ValueOf(b.Worker)
	for i := range was.NumField() {
		if !reflect.DeepEqual(was.Field(i).Interface(), is.Field(i).Interface()) {
			names = append(names, was.Type().Field(i).Tag.Get("toml"))
		}
	}
	return names
}

// isFirst reports whether a registered worker is the first of its id among those of its pool: only that is used.
func isFirst(e *Entry, all []conf.Worker) bool {
	i := slices.IndexFunc(all, func(w conf.Worker) bool { return w.ID == e.Worker.ID })
	return i >= 0 && all[i].URL == e.Worker.URL
}

// fits refuses a worker that is in the way of another.
func fits(e *Entry, found map[string][]conf.Worker) error {
	w := &e.Worker
	for _, pool := range slices.Sorted(maps.Keys(found)) {
		for i := range found[pool] {
			o := &found[pool][i]
			switch {
			case o.Address() == w.Address():
				return refuse(Conflict, "url: worker %s of pool %s has it already; a worker belongs to one pool, once", o.ID, pool)
			case pool == e.Pool && o.ID == w.ID:
				return refuse(Conflict, "id: another worker of pool %s has it, with another url; give each its own", pool)
			}
		}
	}
	if err := conf.CheckLabels(append(slices.Clone(found[e.Pool]), *w)); err != nil {
		return refuse(Wrong, "labels: %v", err)
	}
	return nil
}

// Remove ends a registration.
func (r *Register) Remove(p Process, pool, id string) error {
	r.changing.Lock()
	defer r.changing.Unlock()
	is := func(e Entry) bool { return e.Pool == pool && e.Worker.ID == id }
	if !slices.ContainsFunc(r.Entries(), is) {
		if slices.ContainsFunc(p.Found()[pool], func(w conf.Worker) bool { return w.ID == id }) {
			return refuse(Conflict, "worker %.80s of pool %.80s did not register: take it out of the file, the name or the "+
				"service that gives it, or drain it", id, pool)
		}
		return refuse(Unknown, "no worker %.80q has registered in pool %.80q; GET /api/v1/pools/POOL/workers lists them",
			id, pool)
	}
	if err := r.change(func(all []Entry) []Entry { return slices.DeleteFunc(all, is) }); err != nil {
		return err
	}
	r.log.Info("a registered worker was removed", "pool", pool, "worker", id)
	p.Refind(pool)
	return nil
}

// Expire ends the registrations that were not renewed in time.
func (r *Register) Expire(p Process, now time.Time) {
	over := func(e Entry) bool { return !e.Ends.IsZero() && now.After(e.Ends) }
	r.mu.Lock()
	some := !r.held && slices.ContainsFunc(r.entries, over)
	r.mu.Unlock()
	if !some || !r.changing.TryLock() { // a change under way may take seconds, and comes here again within one
		return
	}
	defer r.changing.Unlock()
	pools := map[string]bool{}
	err := r.change(func(all []Entry) []Entry {
		return slices.DeleteFunc(all, func(e Entry) bool {
			if !over(e) {
				return false
			}
			pools[e.Pool] = true
			r.log.Warn("the registration of a worker has ended, since it was not renewed: it gets no new request",
				"pool", e.Pool, "worker", e.Worker.ID, "ttl", e.TTL)
			return true
		})
	})
	if err != nil {
		r.log.Error("the end of a registration cannot be written down", "file", r.path, "error", err)
	}
	for name := range pools {
		p.Refind(name)
	}
}

// change replaces the entries, in the file first. The caller holds r.changing.
func (r *Register) change(f func([]Entry) []Entry) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.held {
		return errHeld
	}
	next := f(slices.Clone(r.entries))
	if r.path != "" {
		text, err := json.Marshal(next)
		if err == nil {
			err = conf.WriteWhole(r.path, text)
		}
		if err != nil {
			return refuse(Broken, "it cannot be written down, so a restart would forget it; make the folder of %s writable "+
				"for the daemon's user: %v", r.path, err)
		}
	}
	r.entries = next
	return nil
}

// Hold keeps the registrations as they are until release is called: another process has read them from the file.
func (r *Register) Hold() (release func()) {
	r.changing.Lock() // waits for a change under way
	defer r.changing.Unlock()
	set := func(held bool) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.held = held
	}
	set(true)
	return func() { set(false) }
}

// Why is the reason for a refusal.
type Why int

// The reasons for a refusal.
const (
	Wrong    Why = iota + 1 // the worker is not as one must be
	Unknown                 // there is no such pool or worker
	Conflict                // with another worker
	Full                    // there are as many as may be
	Broken                  // the file cannot be written
	Held                    // a new process takes over now
)

// Refusal is what is refused, why, and what to do.
type Refusal struct {
	Why  Why
	Text string
}

// Error returns the text.
func (r *Refusal) Error() string { return r.Text }

func refuse(why Why, format string, a ...any) error {
	return &Refusal{Why: why, Text: fmt.Sprintf(format, a...)}
}

var errHeld = refuse(Held, "an upgrade is under way, and the new process takes over now: send it again")
