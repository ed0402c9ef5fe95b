package session

import (
	"bytes"
	"fmt"
	"time"
)

// maxSwaps bounds how often a change is tried while others change the same binding. Each failure means that the change
// of another router was stored.
const maxSwaps = 8

// Open stores a session that its caller asked for. It sets Created and, where they are missing or too late, Expires. It
// returns the binding for the answer to the client. An error means that nothing was stored: the end that the worker
// named has passed, the id is in use, or there is no room (ErrFull).
func (b *Bindings) Open(n Name, as Binding, now time.Time) (Binding, error) {
	if n.ID == "" || as.Worker == "" {
		return Binding{}, fmt.Errorf("session: a session without id or worker cannot be opened")
	}
	as.Kind = Opened
	as.Owner = n.Owner
	as.Created = now
	as.state = Found
	if as.Expires.IsZero() {
		as.Expires = now.Add(b.conf.Life)
	}
	if last := now.Add(maxLife); as.Expires.After(last) {
		as.Expires = last
	}
	as.Expires = as.Expires.UTC().Truncate(time.Second) // the client gets whole seconds
	if !as.Expires.After(now) {
		return Binding{}, fmt.Errorf("session: the worker %q says that its session ended at %s; is its clock right?",
			as.Worker, as.Expires.Format(time.RFC3339))
	}
	n.Kind = Opened
	k, v := key(n), as.encode()
	for range maxSwaps {
		_, set := b.store.SetIfAbsent(b.ns[Opened], k, v, openedTTL(&as, now))
		if set {
			b.store.Settle(b.ns[Opened], k) // the client may use it at another router at once
			b.begun(Opened, as.Worker)
			b.told(Opened, k, v, openedTTL(&as, now))
			return as, nil
		}
		old, s := b.read(n, k, now)
		switch {
		case s == Found && old.Worker == as.Worker && old.Minted && as.Minted:
			return old.Binding, nil // the worker answered the repeat of an opening
		case s == Found:
			return Binding{}, fmt.Errorf("session: worker %q named a session as one that lives already; its ids must be unique",
				as.Worker)
		// It replaces what it has just read and no other value: the session of another opening may be back in its place.
		case old.value != nil && b.store.CompareAndSwap(b.ns[Opened], k, old.value, v, openedTTL(&as, now)):
			b.begun(Opened, as.Worker)
			b.told(Opened, k, v, openedTTL(&as, now))
			return as, nil
		}
	}
	if !b.store.Room(b.ns[Opened], k, v) {
		return Binding{}, ErrFull
	}
	return Binding{}, fmt.Errorf("session: the store did not take a new session of worker %q", as.Worker)
}

// Full reports whether the owner of a name has no room to open a session more, so that a worker need not be asked.
func (b *Bindings) Full(n Name) bool {
	as := Binding{Owner: n.Owner, Created: time.Now()}
	k := key(n)
	return !b.store.Room(b.ns[Opened], k, as.encode())
}

// openedTTL is how long the store keeps an opened session: to its end and a little longer, to report that it has ended.
func openedTTL(as *Binding, now time.Time) time.Duration {
	return as.Expires.Sub(now) + grace
}

// begun counts a session that this call has entered.
func (b *Bindings) begun(k Kind, worker string) {
	b.count.opened[k].Add(1)
	b.live.enter(worker, k)
}

// Bind stores a Key or Response that no request has bound yet. It returns the worker where the session lives now, and
// whether this call has bound it: another request, here or at a second router, may have been first.
func (b *Bindings) Bind(n Name, worker string, now time.Time) (at string, bound bool) {
	return b.bind(n, worker, now, b.store.SetIfAbsent)
}

// Keep is Bind for a name of which Find returned Silent. The binding is stored in this router alone. When the store
// answers again and has an older one, that one wins.
func (b *Bindings) Keep(n Name, worker string, now time.Time) (at string, bound bool) {
	return b.bind(n, worker, now, b.store.Keep)
}

// setter is the store's call that writes a value for a key without one.
type setter func(ns, key string, value []byte, ttl time.Duration) (now []byte, set bool)

func (b *Bindings) bind(n Name, worker string, now time.Time, set setter) (at string, bound bool) {
	if n.ID == "" || n.Kind == Opened || n.Kind >= kinds {
		return worker, false
	}
	as := Binding{Worker: worker, Kind: n.Kind, Owner: n.Owner, Created: now}
	k, v := key(n), as.encode()
	stood, ok := set(b.ns[n.Kind], k, v, b.conf.TTL)
	if !ok {
		if old, err := decode(stood); err == nil && old.state == Found && old.Kind == n.Kind {
			return old.Worker, false
		}
		b.store.Replace(b.ns[n.Kind], k, stood, v, b.conf.TTL) // nothing that can be read
	}
	b.begun(n.Kind, worker)
	b.told(n.Kind, k, v, b.conf.TTL)
	return worker, true
}

// Rebind moves a session whose worker from is down, and returns the worker where it lives now. That is another one than
// to if another router moved it first, and "" if the session has ended meanwhile.
func (b *Bindings) Rebind(n Name, from, to string, now time.Time) string {
	at := ""
	done, ended := b.change(n, now, b.store.Replace, func(old Binding) (Binding, bool) {
		at = old.Worker
		if old.Worker != from || from == to {
			return old, false
		}
		old.Worker = to
		// The new worker knows nothing of it.
		old.Minted = false
		old.Heard = false
		old.WorkerSession = ""
		return old, true
	})
	switch {
	case done:
		b.count.rebound[n.Kind].Add(1)
		b.live.leave(from, n.Kind)
		b.live.enter(to, n.Kind)
		return to
	case ended:
		return ""
	}
	return at
}

// Close ends a session, and reports whether it was open. If several calls come at once, on this router or on others,
// one gets true.
func (b *Bindings) Close(n Name, now time.Time) bool { return b.end(n, now, Closed) }

// Lose ends a session whose state died with its worker.
func (b *Bindings) Lose(n Name, now time.Time) bool { return b.end(n, now, Lost) }

// end removes a Key or Response. An opened session is replaced by a mark that it has ended, which stays until the
// session's time would have been over. The store takes the mark whatever it has by then, because a client has got the
// end as its answer. A plain delete could be undone by a second tier that missed it while it was gone, or by another
// router's copy.
func (b *Bindings) end(n Name, now time.Time, why Status) bool {
	worker := ""
	if n.Kind != Opened {
		r, s := b.read(n, key(n), now)
		if s != Found {
			return false
		}
		worker = r.Worker
		b.store.Drop(b.ns[n.Kind], key(n), r.value)
		b.told(n.Kind, key(n), nil, 0)
	} else if done, _ := b.change(n, now, b.store.CompareAndSwap, func(old Binding) (Binding, bool) {
		worker = old.Worker
		old.state = why
		return old, true
	}); !done {
		return false
	}
	b.live.leave(worker, n.Kind)
	if why == Lost {
		b.count.lost[n.Kind].Add(1)
	} else {
		b.count.closed[n.Kind].Add(1)
	}
	return true
}

type (
	// swapper is how a store replaces a value.
	swapper func(ns, key string, old, new []byte, ttl time.Duration) bool
	// maker returns what becomes of a binding, and whether it is to be written.
	maker func(old Binding) (as Binding, want bool)
)

// change replaces a live binding by the result of f, unless f returns none. It reports whether it did, and if not,
// whether no session lives under the name.
func (b *Bindings) change(n Name, now time.Time, swap swapper, f maker) (done, ended bool) {
	k := key(n)
	for range maxSwaps {
		old, s := b.read(n, k, now)
		if s != Found {
			return false, true
		}
		as, want := f(old.Binding)
		if !want {
			return false, false
		}
		ttl := b.conf.TTL
		if n.Kind == Opened {
			ttl = old.life // by the store's clock: the date may be of another
		}
		to := as.encode()
		if bytes.Equal(old.value, to) || swap(b.ns[n.Kind], k, old.value, to, ttl) {
			b.told(n.Kind, k, to, ttl)
			return true, false
		}
	}
	return false, false
}
