package peers

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/judge"
	"github.com/warmpath/warmpath/daemon/fleet/watchtest"
	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/request/record"
	"github.com/warmpath/warmpath/daemon/request/route"
	"github.com/warmpath/warmpath/daemon/request/session"
)

// router is one of several routers without a Redis: frames arrive after a delay.
type router struct {
	pool     *route.Pool
	health   watchtest.Numbers
	sender   *Sender
	receiver *Receiver
	open     []*request
	mail     []letter // frames on their way to it, in the order in which they were sent
}

type letter struct {
	frame     []byte
	sent, due time.Time
}

// fleet is several routers of the same workers.
type fleet struct {
	*clock
	t       testing.TB
	r       *rand.Rand
	workers int
	tokens  int
	routers []*router
	texts   []string
	names   uint64
	past    []letter // all frames that were sent, as a stream keeps them
	bound   []session.Name
}

func newFleet(t testing.TB, seed uint64, routers, workers, tokens int) *fleet {
	f := &fleet{clock: &clock{began}, t: t, r: rand.New(rand.NewPCG(seed, 7)), workers: workers, tokens: tokens}
	for range routers {
		f.routers = append(f.routers, f.join())
	}
	f.pass(time.Second)
	return f
}

// hearing is a router whose secret never changes.
type hearing struct {
	alone
	pool *route.Pool
}

func (h hearing) session(s Session) { h.pool.Sessions.Hear(s.Kind, s.Key, s.Value, s.Life) }

func (f *fleet) join() *router {
	f.names++
	n := &router{}
	n.pool, n.health = watchedPool(f.t, f.clock, f.workers, f.tokens)
	secret := n.pool.Secret()
	_, n.sender, n.receiver = newPair(n.pool, f.names, hearing{alone(secret.Fingerprint()), n.pool})
	n.pool.Sessions.Tell(func(kind byte, key string, value []byte, life time.Duration) {
		n.sender.QueueSession(Session{Kind: kind, Key: key, Value: value, Life: life}, f.now)
	})
	n.pool.Tell(n.sender)
	return n
}

// post sends a router's frames to all others. Some of them may get lost.
func (f *fleet) post(from *router, delay time.Duration, loses bool) {
	frames := from.sender.Take(1<<20, f.now)
	from.sender.Confirm(frames)
	for _, frame := range frames {
		if loses && f.r.IntN(20) == 0 {
			continue
		}
		f.past = append(f.past, letter{frame: slices.Clone(frame), sent: f.now})
		for _, to := range f.routers {
			if to != from {
				to.mail = append(to.mail, letter{slices.Clone(frame), f.now, f.now.Add(delay)})
				if f.r.IntN(10) == 0 { // and a second time
					to.mail = append(to.mail, letter{slices.Clone(frame), f.now, f.now.Add(delay)})
				}
			}
		}
	}
}

// deliver applies the frames that have arrived. The stream keeps an order, so a late frame delays those behind it.
func (f *fleet) deliver(to *router) {
	for len(to.mail) > 0 && !to.mail[0].due.After(f.now) {
		if err := to.receiver.Apply(to.mail[0].frame, to.mail[0].sent, f.now); err != nil {
			f.t.Fatalf("a frame is refused: %v", err)
		}
		to.mail = to.mail[1:]
	}
}

// text returns a new text, or one that continues an old one, or one that shares its beginning.
func (f *fleet) text() string {
	var s string
	if len(f.texts) > 0 && f.r.IntN(4) > 0 {
		s = f.texts[f.r.IntN(len(f.texts))]
		if f.r.IntN(3) == 0 {
			s = s[:f.r.IntN(len(s))]
		}
	}
	s += words(fmt.Sprintf("say %d", f.r.IntN(1000)), 1+f.r.IntN(12))
	f.texts = append(f.texts, s)
	if len(f.texts) > 60 {
		f.texts = f.texts[1:]
	}
	return s
}

// step does one random operation.
func (f *fleet) step(loses bool) {
	f.pass(time.Duration(1+f.r.IntN(80)) * 100 * time.Microsecond)
	n := f.routers[f.r.IntN(len(f.routers))]
	switch k := f.r.IntN(20); {
	case k < 5:
		failures := max(0, f.r.IntN(8)-5) // one or two workers fail some requests
		n.open = append(n.open, sendAfter(f.t, n.pool, f.text(), failures, f.now))
		if f.r.IntN(8) == 0 {
			f.bind(n)
		}
	case k < 8 && len(n.open) > 0:
		if o := n.open[f.r.IntN(len(n.open))]; !o.first {
			o.first = true
			o.trip.FirstByte(f.now)
		}
	case k < 12 && len(n.open) > 0:
		i := f.r.IntN(len(n.open))
		o := n.open[i]
		n.open = slices.Delete(n.open, i, i+1)
		if f.r.IntN(5) == 0 {
			o.trip.End(&judge.Outcome{Kind: judge.Canceled}, route.End{At: f.now})
			return
		}
		o.answer(words(fmt.Sprintf("answer %d", f.r.IntN(1000)), 1+f.r.IntN(5)), f.now)
	case k < 17:
		f.post(n, time.Duration(f.r.IntN(100))*time.Millisecond, loses)
	default:
		f.deliver(n)
	}
}

// bind binds a new session; a session has one router at a time.
func (f *fleet) bind(n *router) {
	f.names++
	name := session.Name{Kind: session.Key, ID: fmt.Sprint("session ", f.names)}
	f.bound = append(f.bound, name)
	if _, ok := n.pool.Sessions.Bind(name, fmt.Sprint("w", f.r.IntN(f.workers)), f.now); !ok {
		f.t.Fatal("the session is bound already")
	}
}

// dies makes all routers find a worker down. Its requests end, and after a while it is up again. All earlier messages
// have arrived by then, as a worker takes longer to start than a message takes.
func (f *fleet) dies(number int) {
	id := fmt.Sprint("w", number)
	for _, n := range f.routers {
		n.pool.Workers.Dead(n.health[id], "gone", f.now)
		if _, down := n.pool.Workers.ByKey(worker.KeyOf(id)); !down {
			f.t.Fatal("the worker is not down")
		}
		n.open = slices.DeleteFunc(n.open, func(o *request) bool {
			there := o.trip.Worker().ID() == id
			if there {
				o.trip.End(&judge.Outcome{Kind: judge.Canceled}, route.End{At: f.now})
			}
			return there
		})
	}
	for range 100 {
		f.step(false)
	}
	f.silence()
	for _, n := range f.routers {
		for range 5 {
			n.pool.Workers.Healthy(n.health[id], f.now)
		}
		if w, down := n.pool.Workers.ByKey(worker.KeyOf(id)); w == nil || down {
			f.t.Fatal("the worker is not up again")
		}
	}
}

// restarts kills a router together with its unsent records. When the others have found that, another router takes its
// position, which reads all that was sent.
func (f *fleet) restarts(i int) {
	f.routers = slices.Delete(f.routers, i, i+1)
	for range 8 { // of half a second
		f.pass(Lease / 6)
		for _, n := range f.routers {
			n.sender.QueueBeat(&Beat{Name: "lives"}, f.now)
			f.post(n, 0, false)
		}
		for _, n := range f.routers {
			f.deliver(n)
			n.receiver.Expire(f.now, f.now, true)
		}
	}
	n := f.join()
	n.receiver.BeginReplay()
	for _, l := range f.past {
		if err := n.receiver.Apply(l.frame, l.sent, f.now); err != nil {
			f.t.Fatal(err)
		}
	}
	n.receiver.EndReplay(f.now)
	f.routers = append(f.routers, n)
	f.bound = nil // sessions are in a store of their own
}

// settle waits out a silence, after which each router sends its list of requests in flight.
func (f *fleet) settle() {
	for _, n := range f.routers {
		n.sender.QueueOpen(f.now)
	}
	f.silence()
}

// silence lets every frame arrive.
func (f *fleet) silence() {
	for _, n := range f.routers {
		f.post(n, 0, false)
	}
	f.pass(time.Second)
	for _, n := range f.routers {
		f.deliver(n)
		if len(n.mail) > 0 {
			f.t.Fatal("mail is left")
		}
	}
}

// agree compares all routers with the first one: the requests in flight, and which worker holds which chain.
func (f *fleet) agree(what string) {
	f.t.Helper()
	want := f.routers[0].view(f)
	for i, n := range f.routers[1:] {
		if got := n.view(f); !slices.Equal(got, want) {
			for k := range got {
				if got[k] != want[k] {
					f.t.Fatalf("%s: router %d believes %s; router 0 %s", what, i+1, got[k], want[k])
				}
			}
		}
	}
}

// view lists the state of a router's books, one line for each entry.
func (n *router) view(f *fleet) (all []string) {
	for _, s := range n.pool.Workers.Stats(f.now) {
		all = append(all, fmt.Sprintf("%s: %d in flight, %d tokens queued, %d blocks held", s.ID, s.InFlight+s.Theirs, s.Pending,
			n.pool.Index.Worker(s.Slot).Blocks))
	}
	for _, name := range f.bound {
		at, _ := n.pool.Sessions.Peek(name, f.now)
		all = append(all, fmt.Sprintf("%s is at %q", name.ID, at.Worker))
	}
	for _, text := range f.texts {
		r := probe(f.t, n.pool, text, f.now)
		all = append(all, fmt.Sprintf("%.20q: %v", text, r))
	}
	return all
}

// probe returns how many blocks of a text each worker holds by the pool's books.
func probe(t testing.TB, p *route.Pool, text string, at time.Time) (blocks []int) {
	t.Helper()
	var c route.Choice
	a := ask(t, text, at)
	if v := p.Choose(&c, &a); v != route.Chosen {
		t.Fatal(v)
	}
	defer c.Release()
	var rec record.Record
	c.Note(&rec)
	c.Explain(&rec)
	held := map[string]int{}
	for _, k := range rec.Candidates {
		held[k.Worker] = int(k.GPU)
	}
	for i := range len(held) {
		blocks = append(blocks, held[fmt.Sprint("w", i)])
	}
	return blocks
}

// TestBooksAgree: after ten thousand random operations and a silence, the books of four routers agree on every worker,
// without a new list of requests in flight. Meanwhile workers die, requests are sent again, sessions are bound, and
// routers die and start again, and replay the past.
func TestBooksAgree(t *testing.T) {
	for _, tokens := range []int{1 << 20, 20_000} { // with room for all, and with eviction all the time
		f := newFleet(t, uint64(tokens), 4, 5, tokens)
		for i := range 10_000 {
			f.step(false)
			switch i % 1000 {
			case 300:
				f.dies(f.r.IntN(5))
			case 600:
				f.restarts(f.r.IntN(4))
			case 999:
				f.silence()
				f.agree(fmt.Sprintf("KV of %d tokens, after %d operations", tokens, i+1))
			}
		}
		for i, n := range f.routers {
			if s := n.receiver.Stats(); s.Gaps+s.Foreign+s.Flooded+s.Unlinked != 0 || s.Repeated == 0 || s.Frames == 0 {
				t.Errorf("router %d: %+v", i, s)
			}
		}
	}
}

// With lost frames, the requests in flight agree as well.
func TestBooksAgreeOnFlightsAfterLosses(t *testing.T) {
	f := newFleet(t, 3, 4, 5, 1<<20)
	for range 5000 {
		f.step(true)
	}
	f.settle()
	gaps := uint64(0)
	for i, n := range f.routers {
		for k, s := range n.pool.Workers.Stats(f.now) {
			want := f.routers[0].pool.Workers.Stats(f.now)[k]
			if s.InFlight+s.Theirs != want.InFlight+want.Theirs {
				t.Errorf("router %d, %s: %d in flight; router 0 has %d", i, s.ID, s.InFlight+s.Theirs, want.InFlight+want.Theirs)
			}
		}
		gaps += n.receiver.Stats().Gaps
	}
	if gaps == 0 {
		t.Error("nothing was lost: the test shows nothing")
	}
}
