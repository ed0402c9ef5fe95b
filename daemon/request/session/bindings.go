package session

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"sync/atomic"
	"time"
)

// Config is how long bindings last. It must not be changed after use.
type Config struct {
	Pool string        // whose sessions these are; an id of another pool is unknown
	Life time.Duration // of an opened session whose worker names no end, at most 24 h; default 1,200 s, SageMaker's
	TTL  time.Duration // of a key or a response's id, from its last use; default 30 min
}

// maxLife bounds an opened session's life, whatever end its worker names.
const maxLife = 24 * time.Hour

func (c Config) withDefaults() Config {
	if c.Life <= 0 {
		c.Life = 1200 * time.Second
	}
	if c.TTL <= 0 {
		c.TTL = 30 * time.Minute
	}
	c.Life = min(c.Life, maxLife)
	return c
}

// Namespaces begins the names of the store's namespaces that hold bindings; the kind and the pool follow, as in
// KIND/POOL.
const Namespaces = "session/"

// grace is how long the name of an ended session is remembered, so that its client gets the reason.
const grace = time.Minute

// Bindings knows which worker each session of a pool lives on. It has no state of its own but counters, and is safe
// for concurrent use.
type Bindings struct {
	store Store
	conf  Config
	ns    [kinds]string
	count counters
	live  residents
	tell  atomic.Pointer[Teller]
}

// Teller gets each change: the new value of a key of a kind, and its life time. No value means that the key has none.
// It does not wait.
type Teller func(kind byte, key string, value []byte, life time.Duration)

// hearer is a store that takes what another router has written.
type hearer interface {
	Told(ns, key string, value []byte, ttl time.Duration)
}

// Tell makes t get each change that is made here. nil = they are not passed on.
func (b *Bindings) Tell(t Teller) { b.tell.Store(&t) }

// told hands a change to the Teller.
func (b *Bindings) told(kind Kind, key string, value []byte, life time.Duration) {
	if t := b.tell.Load(); t != nil && *t != nil {
		(*t)(byte(kind), key, value, life)
	}
}

// Hear stores what another router's Teller got. It skips values that are not bindings.
func (b *Bindings) Hear(kind byte, key string, value []byte, life time.Duration) {
	s, ok := b.store.(hearer)
	if !ok || Kind(kind) >= kinds || len(key) != keyBytes || life > maxLife+grace || life <= 0 && len(value) > 0 {
		return
	}
	if found, err := decode(value); len(value) > 0 && (err != nil || found.Kind != Kind(kind)) {
		return
	}
	s.Told(b.ns[kind], key, value, life)
}

type counters struct {
	opened, used, closed, lost, rebound [kinds]atomic.Uint64
	refused                             [statuses]atomic.Uint64
}

// On returns the sessions of a pool that a store keeps.
func On(s Store, c Config) *Bindings {
	b := &Bindings{store: s, conf: c.withDefaults()}
	for k := range kinds {
		b.ns[k] = Namespaces + k.String() + "/" + c.Pool
	}
	return b
}

// key returns the store's key for a name: a hash of the whole name. Ids are secrets, which Redis and its logs should
// not show; the hash compares them whole, and gives every key the same small size whatever a client sends.
func key(n Name) string {
	var space [192]byte // an id has up to 256 bytes, but hardly ever more than 64
	b := binary.LittleEndian.AppendUint64(space[:0], uint64(len(n.Tenant)))
	b = append(append(b, n.Tenant...), n.ID...)
	sum := sha256.Sum256(b)
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// Fingerprint returns a session's name for logs and pages: it differs between sessions and cannot be used as an id.
func Fingerprint(n Name) string { return key(n)[:fingerprint] }

const keyBytes = 43 // of a SHA-256 in base64

const fingerprint = 10 // 60 bits: no two of a million are alike

// Alone reports whether the store is known to be silent. What is changed then may be replaced later by what the store
// has.
func (b *Bindings) Alone() bool { return b.store.Lost() }

// Find returns where a session lives, counts the use or the refusal, and makes a Key or Response last from now on.
func (b *Bindings) Find(n Name, now time.Time) (Binding, Status) {
	k := key(n)
	r, s := b.read(n, k, now)
	if s != Found {
		b.count.refused[s].Add(1)
		return r.Binding, s
	}
	b.use(n, k)
	return r.Binding, Found
}

// Use counts a use of a session that Peek has found, and makes a Key or Response last from now on.
func (b *Bindings) Use(n Name) { b.use(n, key(n)) }

func (b *Bindings) use(n Name, k string) {
	b.count.used[n.Kind].Add(1)
	if n.Kind != Opened {
		b.store.Touch(b.ns[n.Kind], k, b.conf.TTL)
	}
}

// Peek is Find without counting a use or prolonging the session, for pages and for GET /sessions/{id}.
func (b *Bindings) Peek(n Name, now time.Time) (Binding, Status) {
	r, s := b.read(n, key(n), now)
	return r.Binding, s
}

// record is the stored value of a name.
type record struct {
	Binding
	value []byte
	life  time.Duration // that is left of it in the store
}

// read returns the stored value of a name.
func (b *Bindings) read(n Name, k string, now time.Time) (record, Status) {
	if n.ID == "" || n.Kind >= kinds {
		return record{}, Unknown
	}
	v, life, ok, err := b.store.Find(b.ns[n.Kind], k)
	switch {
	case err != nil:
		return record{}, Silent
	case !ok:
		return record{}, Unknown
	}
	found, err := decode(v)
	if err != nil || found.Kind != n.Kind {
		return record{value: v}, Unknown
	}
	return record{Binding: found, value: v, life: life}, found.status(now, life)
}

// clockError is how far the clocks of two routers may be apart before a session's date is not believed.
const clockError = time.Second

// status returns what has become of the binding by now. life is what is left of it in the store, which counts it down
// by a clock that nobody sets: the date decides only where the two are about as one. So a wall clock that is set an
// hour forward ends no session, and one that is set back prolongs none (TestAClockThatIsSet).
func (b *Binding) status(now time.Time, life time.Duration) Status {
	rest := life - grace
	switch {
	case b.state != Found || b.Expires.IsZero() || rest > clockError:
		return b.state
	case life > 0 && rest <= 0, !now.Before(b.Expires):
		return Expired
	}
	return Found
}
