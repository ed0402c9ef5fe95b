package peers

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"reflect"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/worker"
)

// filled sets each field of a page to another value.
func filled(v reflect.Value, n *int) {
	*n++
	switch v.Kind() {
	case reflect.Int64: // Page.Took is not sent
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int:
		v.SetInt(int64(*n))
	case reflect.Float64:
		v.SetFloat(float64(*n) / 100)
	case reflect.String:
		v.SetString(fmt.Sprint("name", *n))
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		filled(v.Index(0), n)
		filled(v.Index(1), n)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		filled(v.Elem(), n)
	case reflect.Struct:
		for i := range v.NumField() {
			filled(v.Field(i), n)
		}
	default:
		panic(v.Kind())
	}
}

// TestSeenOnTheWire: all of a page arrives. The layout is that of the version: if this fails because worker.Page has
// changed, raise seenVersion and write the new sum here.
func TestSeenOnTheWire(t *testing.T) {
	page, n := new(worker.Page), 0
	filled(reflect.ValueOf(page).Elem(), &n)
	one := &worker.Page{Metrics: page.Metrics, Engines: []worker.Metrics{page.Metrics}}
	want := []worker.Seen{{Key: 1, Check: 1, Page: page}, {Key: 2, Check: 2}, {Key: 3, Page: one}}
	var w writer
	w.byte(seenVersion)
	for i := range want {
		writeSeen(&w, &want[i])
	}
	got, ok := readSeen(w.b)
	if !ok || !reflect.DeepEqual(got, want) {
		t.Errorf("%v\n%+v; want\n%+v", ok, got, want)
	}
	if sum := crc32.ChecksumIEEE(w.b); seenVersion != 2 || sum != 0xef85bffe {
		t.Errorf("the layout of version %d has the sum %#x", seenVersion, sum)
	}
}

// TestSeenThatNoRouterWrites: a record that is cut or changed brings no number that a page cannot have, and no panic.
func TestSeenThatNoRouterWrites(t *testing.T) {
	page, n := new(worker.Page), 0
	filled(reflect.ValueOf(page).Elem(), &n)
	var w writer
	w.byte(seenVersion)
	writeSeen(&w, &worker.Seen{Key: 1, Page: page})
	for i := range w.b {
		if _, ok := readSeen(w.b[:i]); ok && i > 1 {
			t.Errorf("%d of %d bytes are a record", i, len(w.b))
		}
		for v := range 256 {
			b := bytes.Clone(w.b)
			b[i] = byte(v)
			all, ok := readSeen(b)
			for _, s := range all {
				if p := s.Page; ok && p != nil && (p.Running < 0 || !(p.Usage >= 0 && p.Usage <= 1) || !(p.Steps >= 0) || len(p.Engines) > maxEngines) {
					t.Fatalf("byte %d as %d: %+v", i, v, p)
				}
			}
		}
	}
	if _, ok := readSeen(append([]byte{seenVersion + 1}, w.b[1:]...)); ok {
		t.Error("another version is read")
	}
}

// TestSeenIsPublished: what one router sees of a worker the others take over, also of more workers than one record
// holds. A page that fits into none is left out.
func TestSeenIsPublished(t *testing.T) {
	f := newFleet(t, 1, 2, 60, 1<<16)
	second := func() {
		f.pass(time.Second)
		for _, r := range f.routers {
			m := &Member{pool: r.pool, sender: r.sender, receiver: r.receiver}
			m.share(f.now)
			r.sender.QueueBeat(&Beat{Name: "r"}, f.now)
			f.post(r, 0, false)
		}
		for _, r := range f.routers {
			f.deliver(r)
		}
	}
	second()
	second()
	from, to := f.routers[0], f.routers[1]
	for _, id := range from.health {
		from.pool.Workers.Healthy(id, f.now)
		from.pool.Workers.Scraped(id, worker.Page{Metrics: worker.Metrics{Running: 3, Usage: .5, Prompts: 12345.5}}, f.now)
	}
	second()
	for _, s := range to.pool.Workers.Stats(f.now) {
		if s.Running != 3 {
			t.Fatalf("%s: %d requests run; want 3", s.ID, s.Running)
		}
	}
	asked := 0
	for name, id := range to.health {
		a, b := to.pool.Workers.Phase(id, f.now), from.pool.Workers.Phase(from.health[name], f.now)
		if b.Checked || b.Read {
			t.Fatalf("%s: the router that alone has asked follows", name)
		}
		if !a.Checked {
			asked++
		}
	}
	if asked < 15 || asked > 45 {
		t.Errorf("the other router asks %d of 60 workers", asked)
	}
	large := worker.Page{Engines: make([]worker.Metrics, 40)}
	id := from.health["w0"]
	from.pool.Workers.Scraped(id, large, f.now)
	from.pool.Workers.Healthy(id, f.now)
	second()
	if s := to.receiver.Stats(); s.Foreign+s.Flooded > 0 {
		t.Errorf("%+v", s)
	}
}
