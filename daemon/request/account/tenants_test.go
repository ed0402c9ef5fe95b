package account_test

import (
	"container/heap"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/request/account"
	"github.com/warmpath/warmpath/daemon/request/limit"
	"github.com/warmpath/warmpath/daemon/request/queue"
)

var runs = flag.Int("tenants", 150, "how many random worlds TestTenants plays; make night plays 10000")

// A world has keys with their clients, a queue, a fleet of workers that is one number of places, and its own time. Limits,
// queue and accounts are the router's own. What happens is in events.
type world struct {
	chance *rand.Rand
	at     time.Time
	events events
	number int

	books   account.Books
	limits  limit.Book
	keys    map[string]*limit.Key
	queue   *queue.Queue
	places  int
	used    int // of the places
	bodies  int // in memory
	readers map[*body]int
	reports bool // the workers report usage
	longest time.Duration
	breach  string // the first invariant that did not hold
	tenants []*tenant
	closed  bool // no client sends anything any more
}

// tenant is a key, and how its clients behave.
type tenant struct {
	name    string
	class   int
	limits  limit.Limits
	clients int
	models  int
	prompt  int     // tokens
	output  int     // of an answer, in the mean
	most    int     // max_tokens that it sends; 0 = none
	under   bool    // answers are longer than that
	stream  bool    // else answers come in one piece
	pairs   bool    // a prefiller computes the prompts
	leaves  float64 // share of the requests whose clients leave
	light   bool    // it has one request at a time, which may not wait for long

	had     float64 // seconds of places and of prefill, while others wait
	taken   []taken
	largest int
}

// taken is what a request took of its key's tokens, by when it was let in.
type taken struct {
	at     time.Time
	tokens int
}

const (
	perToken  = time.Second / 50   // of an answer
	prefill   = time.Second / 4000 // of a prompt's token
	starve    = 8 * time.Second
	queueRoom = 2000
)

type event struct {
	at     time.Time
	number int
	do     func()
}

// events are in the order of their time; two of one time in that in which they were made.
type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, k int) bool {
	return e[i].at.Before(e[k].at) || e[i].at.Equal(e[k].at) && e[i].number < e[k].number
}
func (e events) Swap(i, k int) { e[i], e[k] = e[k], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

// after has something happen later.
func (w *world) after(d time.Duration, do func()) {
	w.number++
	heap.Push(&w.events, event{at: w.at.Add(max(d, time.Microsecond)), number: w.number, do: do})
}

// must notes the first invariant that does not hold.
func (w *world) must(holds bool, format string, args ...any) {
	if !holds && w.breach == "" {
		w.breach = fmt.Sprintf(format, args...)
	}
}

// body is a request's body in memory.
type body struct {
	of    *world
	freed bool
}

// Free implements account.Body.
func (b *body) Free() {
	b.of.must(!b.freed, "a body is freed twice")
	b.of.must(b.of.readers[b] == 0, "a body is freed while a prefill reads it")
	b.freed = true
	b.of.bodies--
}

// request is one request of a client.
type request struct {
	w       *world
	of      *tenant
	account *account.Account
	body    *body
	entry   queue.Request
	waits   account.Hold
	place   account.Hold
	leg     account.Work
	prefill account.Hold
	rest    account.Work // of the engine, after its client has left
	charge  *queue.Charge
	begun   time.Time
	prompt  int
	output  int
	over    bool
}

// sends has a client of a tenant send a request, now and whenever its last one has ended.
func (w *world) sends(t *tenant) {
	if w.closed {
		return
	}
	r := &request{w: w, of: t, account: w.books.Open(), prompt: t.prompt/2 + w.chance.IntN(t.prompt)}
	r.output = 1 + t.output/2 + w.chance.IntN(t.output)
	if t.most > 0 && !t.under {
		r.output = min(r.output, t.most)
	}
	r.body = &body{of: w}
	w.bodies++
	if refused := r.account.Enter(w.keys[t.name], w.at); refused != nil {
		again := max(refused.After, 50*time.Millisecond) + time.Duration(w.chance.IntN(20))*time.Millisecond
		w.must(refused.After <= 61*time.Minute, "%s is told to come back in %v", t.name, refused.After)
		r.end(again)
		return
	}
	place := (time.Duration(r.output) * perToken).Seconds() * (.5 + w.chance.Float64()) // a guess
	r.entry = queue.Request{Lane: uint64(w.chance.IntN(t.models)), Class: t.class, Key: t.name, Owner: r,
		Cost: (time.Duration(r.prompt) * prefill).Seconds(), Place: place, Bytes: 1 << 10}
	r.account.Take(&r.waits, account.Queue, 1)
	displaced, ok := w.queue.Enter(&r.entry, w.at)
	for _, d := range displaced {
		d.Owner.(*request).end(time.Second)
	}
	if !ok {
		r.end(time.Second)
		return
	}
	if w.chance.Float64() < t.leaves/2 {
		w.after(time.Duration(w.chance.ExpFloat64()*float64(2*time.Second)), func() {
			if r.begun.IsZero() && !r.over {
				w.queue.Leave(&r.entry, w.at)
				r.end(0)
			}
		})
	}
	w.serve()
}

// end ends a request whose work is done, and has its client send the next one.
func (r *request) end(again time.Duration) {
	w := r.w
	r.over = true
	r.waits.Release()
	r.waits.Release()
	r.account.Keep(r.body)
	r.account.End(w.at)
	r.account.End(w.at)
	w.after(again, func() { w.sends(r.of) })
}

// serve gives turns while there are places.
func (w *world) serve() {
	w.queue.Wake()
	for entry := w.queue.Next(w.at); entry != nil; entry = w.queue.Next(w.at) {
		r := entry.Owner.(*request)
		if w.used == w.places {
			w.queue.Blocked(entry)
			continue
		}
		ask := limit.Ask{Prompt: r.prompt, Exact: true, Answers: 1, Most: r.of.most, Whole: !r.of.stream}
		if refused := r.account.Spent().Reserve(ask, w.at); refused != nil {
			entry.Limited = true
			w.queue.Served(entry, w.at).End(w.at)
			r.end(max(refused.After, 50*time.Millisecond))
			continue
		}
		r.charge = w.queue.Served(entry, w.at)
		r.begin()
	}
}

// begin sends a request to a worker.
func (r *request) begin() {
	w, t := r.w, r.of
	r.waits.Release()
	r.begun = w.at
	r.account.Sent()
	r.account.Take(&r.place, account.Worker, 1)
	w.used++
	if wait := w.at.Sub(r.entry.Entered); t.light {
		w.must(wait <= starve+w.longest, "%s waited for %v; the longest service took %v", t.name, wait, w.longest)
	}
	took := time.Duration(r.prompt)*prefill + time.Duration(r.output)*perToken
	w.longest = max(w.longest, took)
	if t.pairs {
		r.account.Begin(&r.leg, true)
		r.account.Take(&r.prefill, account.Prefill, 1)
		w.readers[r.body]++
		w.after(time.Duration(r.prompt)*prefill, func() {
			delete(w.readers, r.body)
			r.prefill.Release()
			r.leg.End(w.at)
			r.leg.End(w.at)
		})
	}
	if t.stream {
		for _, part := range []float64{.25, .5, .75} {
			w.after(time.Duration(float64(took)*part), func() {
				if !r.over {
					r.account.Spent().Grow(int(float64(r.output)*part), w.at)
				}
			})
		}
	}
	if w.chance.Float64() < t.leaves {
		w.after(time.Duration(w.chance.Float64()*float64(took)), func() { r.left(took) })
	}
	w.after(took, func() { r.done() })
}

// left is what happens when the client disconnects. A stream ends at its worker; an answer in one piece goes on there,
// and its work stays on the account.
func (r *request) left(took time.Duration) {
	if r.over {
		return
	}
	w, s := r.w, r.account.Spent()
	if r.of.stream {
		r.output = int(float64(r.output) * float64(w.at.Sub(r.begun)) / float64(took))
		s.Use(limit.Tokens{Prompt: r.prompt, Output: r.output})
		r.leaves()
		r.end(0)
		return
	}
	s.Left(w.at)
	r.account.Begin(&r.rest, false)
	r.end(0)
}

// done is the end of the answer.
func (r *request) done() {
	w := r.w
	switch {
	case !r.over:
		used := limit.Tokens{Prompt: r.prompt, Output: r.output}
		r.account.Spent().Use(used)
		if !w.reports { // the router counts the bytes of the answer
			used.Prompt = 0
		}
		r.account.Spent().Learn(used, w.at)
		r.leaves()
		r.end(0)
	case !r.of.stream: // nobody waits for it
		r.leaves()
		r.rest.End(w.at)
	}
	w.serve()
}

// leaves gives the place at the worker back.
func (r *request) leaves() {
	w, t := r.w, r.of
	r.place.Release()
	r.place.Release()
	w.used--
	took := w.at.Sub(r.begun)
	r.charge.End(w.at)
	r.charge.End(w.at)
	if !w.closed {
		t.had += took.Seconds() + r.entry.Cost
	}
	t.taken = append(t.taken, taken{r.begun, r.prompt + r.output})
	t.largest = max(t.largest, r.prompt+r.output)
	w.check()
}

// check looks at the sums.
func (w *world) check() {
	s := w.books.Sums()
	w.must(s.Held[account.Worker] == int64(w.used) && w.used <= w.places, "%d places are taken, the books have %d, there are %d",
		w.used, s.Held[account.Worker], w.places)
	w.must(s.Held[account.Queue] == int64(w.queue.Depth()) && w.queue.Depth() <= queueRoom, "%d wait, the books have %d",
		w.queue.Depth(), s.Held[account.Queue])
	w.must(slices.Min(s.Held[:]) >= 0 && s.Open >= 0 && s.Leaks == 0, "the books have %+v", s)
	w.must(w.bodies >= 0, "%d bodies", w.bodies)
}

// live plays the tenants for some minutes, then lets them rest.
func (w *world) live(minutes int) {
	for _, t := range w.tenants {
		for range t.clients {
			w.after(time.Duration(w.chance.IntN(1000))*time.Millisecond, func() { w.sends(t) })
		}
	}
	for end := w.at.Add(time.Duration(minutes) * time.Minute); w.at.Before(end) && w.breach == ""; {
		next := heap.Pop(&w.events).(event)
		w.at = next.at
		next.do()
		if w.number%64 == 0 {
			for _, s := range w.limits.Stats(w.at) {
				w.must(s.InFlight >= 0 && (s.Limits.InFlight == 0 || s.InFlight <= s.Limits.InFlight), "%s has %d in flight", s.Key, s.InFlight)
				w.must(s.Tokens.Reset >= 0 && s.Requests.Remaining >= 0 && s.Tokens.Remaining >= 0, "%s has %+v left", s.Key, s)
			}
		}
	}
	w.rest()
	for _, t := range w.tenants {
		w.paid(t, minutes)
	}
}

// rest lets what is under way end, and looks whether anything is left.
func (w *world) rest() {
	if w.breach != "" {
		return
	}
	w.closed = true
	for len(w.events) > 0 {
		next := heap.Pop(&w.events).(event)
		w.at = next.at
		next.do()
	}
	s := w.books.Sums()
	w.must(s == account.Sums{}, "at rest the books have %+v", s)
	w.must(w.bodies == 0, "at rest %d bodies are in memory", w.bodies)
	w.at = w.at.Add(2 * time.Hour)
	for _, s := range w.limits.Stats(w.at) {
		w.must(s.InFlight == 0 && s.Requests.Remaining == s.Limits.Requests && s.Tokens.Remaining == s.Limits.Tokens,
			"two hours later %s has %d in flight, and %d of %d tokens, %d of %d requests left", s.Key, s.InFlight, s.Tokens.Remaining,
			s.Limits.Tokens, s.Requests.Remaining, s.Limits.Requests)
	}
}

// paid looks whether a key got more than its limit: in any 60 s 1.05 of it and one request, in the long run its limit.
func (w *world) paid(t *tenant, minutes int) {
	if t.limits.Tokens == 0 {
		return
	}
	const most = 1.05
	slices.SortFunc(t.taken, func(a, b taken) int { return a.at.Compare(b.at) })
	sum, all, first := 0, 0, 0
	for _, x := range t.taken {
		sum += x.tokens
		all += x.tokens
		for ; x.at.Sub(t.taken[first].at) >= time.Minute; first++ {
			sum -= t.taken[first].tokens
		}
		w.must(float64(sum) <= most*float64(t.limits.Tokens)+float64(t.largest), "%s: %d of %d tokens in 60 s, the largest request has %d",
			t.name, sum, t.limits.Tokens, t.largest)
	}
	w.must(float64(all) <= (float64(minutes)+1.05)*float64(t.limits.Tokens)+float64(t.largest), "%s: %d tokens in %d minutes, of %d a minute",
		t.name, all, minutes, t.limits.Tokens)
}

// newWorld makes a world with its tenants.
func newWorld(chance *rand.Rand, places int, tenants ...*tenant) *world {
	w := &world{chance: chance, at: time.Unix(1e9, 0), queue: queue.New(queue.Config{MaxRequests: queueRoom, MaxBytes: 1 << 30,
		Starve: starve}), places: places, readers: map[*body]int{}, reports: chance.IntN(4) > 0, tenants: tenants}
	all := map[string]limit.Limits{}
	for _, t := range tenants {
		all[t.name] = t.limits
	}
	w.keys = w.limits.Configure(all, w.at)
	return w
}

// equals are keys without limits, which ask for all they can get, of many sorts. They get the same.
func equals(chance *rand.Rand) *world {
	var all []*tenant
	for i := range 2 + chance.IntN(3) {
		t := &tenant{name: fmt.Sprint("key", i), models: 1, clients: 10 + chance.IntN(20), prompt: 200 + chance.IntN(2000),
			output: 10 + chance.IntN(60), stream: chance.IntN(2) == 0, pairs: chance.IntN(2) == 0}
		switch chance.IntN(4) {
		case 0:
			t.models = 5 + chance.IntN(20)
			t.clients = 3 * t.models
		case 1:
			t.leaves = .3
		}
		all = append(all, t)
	}
	return newWorld(chance, 1+chance.IntN(3), all...)
}

// flooded is a key with one request at a time below a key of a higher class that asks for all it can get.
func flooded(chance *rand.Rand) *world {
	return newWorld(chance, 1+chance.IntN(2),
		&tenant{name: "flood", class: 1, models: 1 + chance.IntN(3), clients: 8, prompt: 100, output: 20 + chance.IntN(100)},
		&tenant{name: "light", models: 1, clients: 1, prompt: 500, output: 1 + chance.IntN(40), light: true})
}

// limited are keys with limits of all sorts: honest ones, greedy ones, some whose clients leave, some that understate
// max_tokens, some with many models. Workers report usage in three worlds of four.
func limited(chance *rand.Rand) *world {
	var all []*tenant
	for i := range 1 + chance.IntN(4) {
		t := &tenant{name: fmt.Sprint("key", i), class: chance.IntN(3), models: 1 + chance.IntN(2)*chance.IntN(20), clients: 2 + chance.IntN(40),
			prompt: 50 + chance.IntN(200), output: 20 + chance.IntN(200), stream: chance.IntN(2) == 0, pairs: chance.IntN(2) == 0}
		t.limits = limit.Limits{InFlight: chance.IntN(2) * (1 + chance.IntN(20)), Requests: chance.IntN(2) * (20 + chance.IntN(1000)),
			Tokens: 20_000 + chance.IntN(100_000), Cached: chance.IntN(2) == 0}
		switch chance.IntN(4) {
		case 0:
			t.leaves = chance.Float64() * .8
		case 1:
			t.most, t.under = 1+chance.IntN(t.output), true
		case 2:
			t.most = 2000
		}
		all = append(all, t)
	}
	return newWorld(chance, 20+chance.IntN(80), all...)
}

// TestTenants plays random worlds. In each no account is below zero or above its bound, and at rest all are zero; a key
// gets at most 1.05 of its tokens and one request in 60 s, and pays what is above; equal keys get equal parts of the
// workers; and nobody waits for longer than starve and one service.
func TestTenants(t *testing.T) {
	t.Parallel()
	const parts = 3 // of the worlds, side by side
	for part := range parts {
		t.Run(fmt.Sprint(part), func(t *testing.T) {
			t.Parallel()
			for seed := part; seed < *runs; seed += parts {
				if breach := play(seed); breach != "" {
					t.Fatalf("world %d: %s", seed, breach)
				}
			}
		})
	}
}

// play plays one world, and returns what was wrong in it, "" if nothing was.
func play(seed int) (breach string) {
	chance := rand.New(rand.NewPCG(uint64(seed), 46))
	kind := seed % 4
	w, minutes := []func(*rand.Rand) *world{equals, flooded, limited, limited}[kind](chance), 5
	w.live(minutes)
	if kind == 0 {
		sum, squares := 0., 0.
		for _, x := range w.tenants {
			sum += x.had
			squares += x.had * x.had
		}
		w.must(sum*sum/float64(len(w.tenants))/squares >= .95, "Jain's index over equal keys is %.3f", sum*sum/float64(len(w.tenants))/squares)
	}
	return w.breach
}
