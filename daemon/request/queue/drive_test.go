package queue

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// driver lets a queue and the model do what operations say, one byte each with what it takes, and compares them.
type driver struct {
	*testing.T
	q      *Queue
	m      *model
	ops    []byte
	at     time.Time
	number int // of requests
	fate   map[*Request]string
	work   []*worked
}

// worked is a request at a worker.
type worked struct {
	*Charge
	r *Request
}

func drive(t *testing.T, conf Config, ops []byte) {
	d := &driver{T: t, q: New(conf), m: newModel(conf), ops: ops, at: start, fate: map[*Request]string{}}
	for len(d.ops) > 0 {
		d.at = d.at.Add(1) // no two flows have waited equally long
		d.step(d.take())
		c := d.q.Counts()
		if n, b := len(d.m.all()), d.m.bytes(); c.Depth != n || c.Bytes != b || n > conf.MaxRequests || b > conf.MaxBytes {
			t.Fatalf("%d wait with %d bytes; want %d with %d", c.Depth, c.Bytes, n, b)
		}
	}
	d.wake()
	for d.serve() {
	}
	q := d.q
	if c := q.Counts(); c.Depth != 0 || c.Bytes != 0 || len(d.fate) != d.number ||
		len(q.lanes)+len(q.keys)+len(q.flows)+len(q.ready)+len(q.aged)+q.roomless.Len() != 0 {
		t.Fatalf("of %d requests %d have an end; left behind: %+v", d.number, len(d.fate), c)
	}
}

func (d *driver) take() (b byte) {
	if len(d.ops) > 0 {
		b, d.ops = d.ops[0], d.ops[1:]
	}
	return b
}

func (d *driver) step(op byte) {
	switch op % 16 {
	default:
		d.enter(nil)
	case 0, 1, 2:
		d.serve()
	case 3, 4:
		if r := d.turn(); r != nil {
			d.q.Blocked(r)
			d.m.blocked[r.Lane] = true
		}
	case 5: // it looks for a worker while others come and go, and finds none
		if r := d.turn(); r != nil {
			d.enter(r)
			if op&16 > 0 {
				d.wake()
			}
			d.q.Blocked(r)
			d.m.blocked[r.Lane] = op&16 == 0
		}
	case 6:
		if all := d.m.all(); len(all) > 0 {
			r := all[int(d.take())%len(all)]
			d.q.Leave(r, d.at)
			d.m.remove(r, d.at)
			d.end(r, "gone")
		}
	case 7, 8:
		d.wake()
	case 10:
		d.ends()
	case 11:
		r := d.request()
		if c := d.q.Began(r, d.at); d.m.began(r, d.at) {
			d.work = append(d.work, &worked{c, r})
		}
	case 9:
		d.at = d.at.Add(time.Duration(d.take()) * 20 * time.Millisecond)
	}
}

func (d *driver) wake() {
	d.q.Wake()
	clear(d.m.blocked)
}

func (d *driver) end(r *Request, how string) {
	if d.fate[r] != "" {
		d.Fatalf("%q was %s, and is %s", r.Owner, d.fate[r], how)
	}
	d.fate[r] = how
}

// turn returns who has the turn by both.
func (d *driver) turn() *Request {
	want, early := d.m.next(d.at)
	r := d.q.Next(d.at)
	if r != want {
		d.Fatalf("%+v has the turn; want %+v", r, want)
	}
	if r != nil && d.q.early != early {
		d.Fatalf("%q before a higher class: %t; want %t", r.Owner, d.q.early, early)
	}
	if d.q.Next(d.at) != nil {
		d.Fatal("two have the turn")
	}
	return r
}

func (d *driver) serve() bool {
	r := d.turn()
	if r == nil {
		return false
	}
	early := d.q.early
	d.work = append(d.work, &worked{d.q.Served(r, d.at), r})
	d.m.serve(r, early, d.at)
	d.end(r, "served")
	return true
}

// ends has a worker do its work on a request.
func (d *driver) ends() {
	if len(d.work) == 0 {
		return
	}
	i := int(d.take()) % len(d.work)
	w := d.work[i]
	d.work = slices.Delete(d.work, i, i+1)
	took := d.at.Sub(w.since).Seconds()
	w.End(d.at)
	w.End(d.at.Add(time.Hour)) // changes nothing
	d.m.end(w.r, took, d.at)
}

func (d *driver) request() *Request {
	a, b := d.take(), d.take()
	r := &Request{Lane: uint64(a & 1), Class: int(a>>1&3) - 2, Key: string('a' + rune(a>>3&1)),
		Flow: string('a' + rune(a>>4&1)), Bytes: int64(b & 63), Weight: []float64{.5, 1, 2, 4}[a>>5&3],
		Cost: float64(1+int(b)*3) / 64, Place: float64(a) / 64, KV: float64(b) / 256, Owner: d.number}
	if a>>7 == 1 {
		r.Deadline = d.at.Add(time.Duration(b) * time.Second)
	}
	r.clamp()
	return r
}

// enter lets a request come while another one, or nobody, has the turn.
func (d *driver) enter(has *Request) {
	r := d.request()
	d.number++
	d.m.rests(d.at)
	if a := d.m.accounts[accountOf(nameOf(r))]; a != nil {
		a.weight = r.Weight
	}
	refuse, full := d.m.mustRefuse(r, has), !d.m.fits(r)
	out, ok := d.q.Enter(r, d.at)
	switch {
	case !ok && !refuse:
		d.Fatalf("%+v was refused", r)
	case !ok:
		d.end(r, "refused")
		return
	case len(out) == 0 && full:
		d.Fatalf("%+v entered a full queue", r)
	case len(out) > 0:
		if err := d.m.mayDisplace(r, has, out); err != nil {
			d.Fatalf("%+v entered: %v", r, err)
		}
	}
	for _, x := range out {
		d.m.remove(x, d.at)
		d.end(x, "displaced")
	}
	d.m.enter(r, d.at)
}

// fits reports whether a request finds room without displacing another.
func (m *model) fits(r *Request) bool {
	return len(m.all()) < m.conf.MaxRequests && m.bytes()+r.Bytes <= m.conf.MaxBytes
}

// small bounds make a queue of the model full often.
func small(byDeadline bool) Config {
	return Config{MaxRequests: 12, MaxBytes: 300, Starve: time.Second, ByDeadline: byDeadline}
}

// TestAsTheModel: the queue does what plain loops do, in whatever order things happen.
func TestAsTheModel(t *testing.T) {
	chance := rand.New(rand.NewPCG(1, 2))
	for range 400 {
		ops := make([]byte, 600)
		for i := range ops {
			ops[i] = byte(chance.Uint32())
		}
		drive(t, small(ops[0]&1 == 0), ops)
	}
}

func FuzzQueue(f *testing.F) {
	f.Add([]byte("abcdefghijklmnopqrstuvwxyz"), false)
	f.Add([]byte{10, 1, 2, 10, 3, 4, 0, 3, 7, 5, 10, 200, 9, 255, 6, 1}, true)
	f.Fuzz(func(t *testing.T, ops []byte, byDeadline bool) { drive(t, small(byDeadline), ops) })
}
