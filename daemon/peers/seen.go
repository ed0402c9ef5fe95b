package peers

import (
	"math"
	"math/bits"
	"reflect"
	"slices"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/worker"
)

const (
	// seenRecord is the kind of a session record that holds what a router has seen of workers. No session has that kind,
	// so a router of an earlier release ignores the record, and asks all workers itself.
	seenRecord = 0xD1
	// seenVersion begins the record: another layout of worker.Page is another version (TestSeenOnTheWire).
	seenVersion = 2
	// seenLife is how long such a record is valid: as long as its router counts as alive.
	seenLife = Lease
	// maxEngines bounds the engines of a page, and the adapters that it names.
	maxEngines = 256
)

// share has the pool divide the questions to its workers among the routers that are alive, and publishes what this one
// has seen of them in the last second.
func (m *Member) share(now time.Time) {
	publish := func(all []worker.Seen) { m.publish(all, time.Now()) }
	m.mu.Lock()
	own := m.digest
	m.mu.Unlock()
	others := m.receiver.alive(own, now)
	m.pool.Book.Routers.Store(int32(1 + len(others)))
	m.publish(m.pool.Workers.Share(m.sender.self, others, publish), now)
}

// alive returns the routers whose records count. own is the digest of this router's workers.
func (r *Receiver) alive(own uint64, now time.Time) (all []worker.Sharer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id, p := range r.peers {
		if p.foreign || !p.isAlive(now) {
			continue
		}
		o := worker.Sharer{ID: id}
		if p.beat.digest != own && len(p.beat.Workers) > 0 {
			o.Has = make(map[uint64]bool, len(p.beat.Workers))
			for _, w := range p.beat.Workers {
				o.Has[w.Key] = true
			}
		}
		all = append(all, o)
	}
	return all
}

// namesFor is how long a router that has gone keeps its part of the workers: it may restart.
const namesFor = 30 * time.Second

// Names returns the names of the other routers that have the pool, also of those that may come back within seconds. A
// nil Peers knows none.
func (p *Peers) Names(pool string, now time.Time) (all []string) {
	if p == nil {
		return nil
	}
	for _, m := range p.list() {
		if m.name != pool {
			continue
		}
		m.receiver.mu.Lock()
		for _, o := range m.receiver.peers {
			if !o.foreign && o.beat.Name != "" && (!o.gone || now.Sub(o.lastSent) < namesFor) {
				all = append(all, o.beat.Name)
			}
		}
		m.receiver.mu.Unlock()
	}
	return all
}

// publish queues what was seen of workers, as many of them in a record as fit. A page that fits into none is left out:
// that of a dozen engines. Then each router reads it itself.
func (m *Member) publish(all []worker.Seen, now time.Time) {
	var w writer
	send := func() {
		m.sender.QueueSession(Session{Kind: seenRecord, Value: w.b, Life: seenLife}, now)
		w.b = nil
	}
	for i := range all {
		var one writer
		writeSeen(&one, &all[i])
		if len(one.b) >= maxString {
			all[i].Page = nil
			one.b = nil
			writeSeen(&one, &all[i])
		}
		if len(w.b)+len(one.b) > maxString {
			send()
		}
		if len(w.b) == 0 {
			w.byte(seenVersion)
		}
		w.b = append(w.b, one.b...)
	}
	if len(w.b) > 0 {
		send()
	}
}

// writeSeen writes what was seen of a worker: key u64, check u8, number of engines, and of each its figures. The sums
// over the engines are not written: of a single engine they are the same.
func writeSeen(w *writer, s *worker.Seen) {
	w.fixed(s.Key)
	w.byte(byte(s.Check))
	if s.Page == nil {
		w.byte(0)
		return
	}
	w.byte(byte(1 + min(2, len(s.Page.Engines))))
	if len(s.Page.Engines) == 1 {
		writeValue(w, reflect.ValueOf(s.Page.Metrics))
		return
	}
	writeValue(w, reflect.ValueOf(s.Page.Metrics))
	writeValue(w, reflect.ValueOf(s.Page.Engines))
}

// writeValue writes the fields of a struct in their order. A number is the reversed bits of its float64 as a varint: a
// whole number takes few bytes.
func writeValue(w *writer, v reflect.Value) {
	switch v.Kind() {
	case reflect.Bool:
		w.byte(map[bool]byte{true: 1}[v.Bool()])
	case reflect.Int:
		w.uint(bits.ReverseBytes64(math.Float64bits(float64(v.Int()))))
	case reflect.Float64:
		w.uint(bits.ReverseBytes64(math.Float64bits(v.Float())))
	case reflect.String:
		w.bytes(v.String())
	case reflect.Slice:
		w.uint(uint64(v.Len()))
		for i := range v.Len() {
			writeValue(w, v.Index(i))
		}
	case reflect.Pointer:
		w.byte(map[bool]byte{false: 1}[v.IsNil()])
		if !v.IsNil() {
			writeValue(w, v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			writeValue(w, v.Field(i))
		}
	}
}

// readSeen reads the value of a seenRecord. It returns false for another version, and for one that no router writes.
func readSeen(b []byte) (all []worker.Seen, ok bool) {
	r := &reader{b: b}
	if r.byte() != seenVersion {
		return nil, false
	}
	for r.more() {
		s := worker.Seen{Key: r.fixed(), Check: r.upTo(2)}
		switch n := r.upTo(3); n {
		case 0:
		case 2:
			s.Page = new(worker.Page)
			readValue(r, reflect.ValueOf(&s.Page.Metrics).Elem())
			s.Page.Engines = []worker.Metrics{s.Page.Metrics}
		default:
			s.Page = new(worker.Page)
			readValue(r, reflect.ValueOf(&s.Page.Metrics).Elem())
			readValue(r, reflect.ValueOf(&s.Page.Engines).Elem())
		}
		if s.Page != nil && slices.ContainsFunc(append(s.Page.Engines, s.Page.Metrics), overfull) {
			return nil, false
		}
		all = append(all, s)
	}
	return all, !r.bad
}

func overfull(m worker.Metrics) bool { return m.Usage > 1 }

// readValue reads what writeValue wrote. It fails for a number that a page cannot have.
func readValue(r *reader, v reflect.Value) {
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(r.upTo(1) == 1)
	case reflect.Int:
		v.SetInt(int64(readNumber(r, math.MaxInt32)))
	case reflect.Float64:
		v.SetFloat(readNumber(r, 1e15))
	case reflect.String:
		v.SetString(r.bytes())
	case reflect.Slice:
		n := min(r.count(1), maxEngines)
		if n > 0 {
			v.Set(reflect.MakeSlice(v.Type(), n, n))
		}
		for i := range n {
			readValue(r, v.Index(i))
		}
	case reflect.Pointer:
		if r.upTo(1) == 1 {
			v.Set(reflect.New(v.Type().Elem()))
			readValue(r, v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			readValue(r, v.Field(i))
		}
	}
}

func readNumber(r *reader, most float64) float64 {
	f := math.Float64frombits(bits.ReverseBytes64(r.uint()))
	if !(f >= 0 && f <= most) {
		r.fail()
		return 0
	}
	return f
}
