package admission

import (
	"context"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/warmpath/warmpath/daemon/request/epoch"
	"github.com/warmpath/warmpath/daemon/request/journal"
	"github.com/warmpath/warmpath/daemon/request/limit"
	"github.com/warmpath/warmpath/daemon/request/message"
	"github.com/warmpath/warmpath/daemon/request/queue"
	"github.com/warmpath/warmpath/daemon/request/waiting"
	"github.com/warmpath/warmpath/daemon/transport/gate"
)

// waits is a Meter that takes nothing but waits.
type waits struct{ journal.Meter }

func (waits) Waited(*message.Seen, journal.Waited) {}

// throng are the clients of one key, each of which has one request at a time and comes again when it is told to.
type throng struct {
	keys    map[string]*limit.Key
	pool    *epoch.Pool
	journal journal.Journal

	mu    sync.Mutex // guards all below
	used  []spent
	turns int // 429
	good  int
}

// spent are tokens that were used at a time.
type spent struct {
	at     time.Time
	tokens float64
}

func newThrong(l limit.Limits, q *waiting.Queue) *throng {
	return &throng{keys: (&limit.Book{}).Configure(map[string]limit.Limits{"team": l}, time.Now()), pool: &epoch.Pool{Queue: q},
		journal: journal.Journal{Meter: waits{}}}
}

// ask is one request of the key, whose answer takes some seconds. It returns its refusal.
func (x *throng) ask(ctx context.Context, r *rand.Rand) *message.Fault {
	in := inbound("POST", "/v1/chat/completions", `{}`)
	in.Caller = &gate.Caller{Name: "team"}
	in.Epoch = &epoch.Epoch{Limits: x.keys}
	req := &Request{In: in, Journal: &x.journal, Epoch: in.Epoch, Pool: x.pool, Arrived: time.Now()}
	req.Read.Parse(in, "")
	if f := LetIn(ctx, req); f != nil {
		return f
	}
	defer func() { in.Account.End(time.Now()) }()
	t := limit.Tokens{Prompt: 50 + r.IntN(200), Output: 10 + r.IntN(100)}
	asked := limit.Ask{Prompt: t.Prompt, Exact: true, Answers: 1, Most: t.Output}
	for over := in.Account.Spent().Reserve(asked, time.Now()); over != nil; over = in.Account.Spent().Reserve(asked, time.Now()) {
		req.Limits.refused = over
		if f := AwaitLimit(ctx, req, req.Limits.fault()); f != nil {
			return f
		}
	}
	in.Account.Sent()
	at := time.Now()
	time.Sleep(time.Duration(500+r.IntN(4000)) * time.Millisecond)
	in.Account.Spent().Use(t)
	x.mu.Lock()
	defer x.mu.Unlock()
	x.good++
	x.used = append(x.used, spent{at: at, tokens: float64(t.Prompt + t.Output)})
	return nil
}

// run has so many clients ask for ten minutes, and returns the most tokens of any minute and the mean of all but the
// first, as shares of the limit.
func (x *throng) run(clients, limit int) (most, mean float64) {
	began := time.Now()
	var all sync.WaitGroup
	for i := range clients {
		all.Go(func() {
			r := rand.New(rand.NewPCG(1, uint64(i)))
			for time.Since(began) < 10*time.Minute {
				if f := x.ask(context.Background(), r); f != nil {
					x.mu.Lock()
					x.turns++
					x.mu.Unlock()
					time.Sleep(time.Duration(f.Retry) * time.Second)
				}
			}
		})
	}
	all.Wait()
	for _, s := range x.used {
		sum := 0.0
		for _, o := range x.used {
			if d := o.at.Sub(s.at); d >= 0 && d < time.Minute {
				sum += o.tokens
			}
		}
		most = max(most, sum/float64(limit))
		if d := s.at.Sub(began); d >= time.Minute && d < 10*time.Minute {
			mean += s.tokens / float64(limit) / 9
		}
	}
	return most, mean
}

// 50 clients of one key: in no minute they get more than 1.05 of the limit, over all .95 at least, and with a queue
// fewer of them are turned away. In the end nobody waits.
func TestLimitWaits(t *testing.T) {
	const tokens = 10_000
	turns := [2]int{}
	for i, queued := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var q *waiting.Queue
			if queued {
				q = waiting.New(waiting.Config{Config: queue.Config{MaxRequests: 1000, MaxBytes: 1 << 30}, Wait: time.Minute})
			}
			x := newThrong(limit.Limits{Tokens: tokens}, q)
			most, mean := x.run(50, tokens)
			turns[i] = x.turns
			t.Logf("queue %v: at most %.3f of the limit in a minute, %.3f in the mean; %d served, %d turned away", queued,
				most, mean, x.good, x.turns)
			if most > 1.05 || mean < .95 {
				t.Errorf("at most %.3f in a minute, %.3f in the mean; want at most 1.05, and at least .95", most, mean)
			}
			if q != nil && q.Depth() != 0 {
				t.Errorf("%d still wait", q.Depth())
			}
			time.Sleep(time.Second) // the queue's tick
		})
	}
	if turns[1]*5 > turns[0] {
		t.Errorf("with a queue %d are turned away, without one %d", turns[1], turns[0])
	}
}

// What no limit will let in in time is turned away at once, and nothing of it stays.
func TestLimitThatNobodyWaitsFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := waiting.New(waiting.Config{Config: queue.Config{MaxRequests: 2, MaxBytes: 1 << 30}, Wait: 5 * time.Second})
		x := newThrong(limit.Limits{Requests: 1}, q)
		r := rand.New(rand.NewPCG(1, 1))
		if f := x.ask(t.Context(), r); f != nil {
			t.Fatal(f)
		}
		began := time.Now()
		if f := x.ask(t.Context(), r); f == nil || f.Status != http.StatusTooManyRequests || f.Dropped != "limit" ||
			time.Since(began) > 0 {
			t.Errorf("a limit that is far away: %+v after %v", f, time.Since(began))
		}
		x.keys = newThrong(limit.Limits{InFlight: 1}, q).keys
		ctx, leave := context.WithCancel(t.Context())
		results := make(chan *message.Fault, 5)
		for range 4 {
			go func() { results <- x.ask(ctx, rand.New(rand.NewPCG(1, 1))) }()
			synctest.Wait()
		}
		if f := <-results; f == nil || f.Code != "rate_limit_exceeded" || q.Depth() != 2 { // one is let in, two wait
			t.Errorf("the queue is full: %+v, and %d wait", f, q.Depth())
		}
		leave()
		synctest.Wait()
		for range 2 {
			if f := <-results; f != &message.FaultGone {
				t.Errorf("one that left: %+v", f)
			}
		}
		if f := <-results; f != nil || q.Depth() != 0 {
			t.Errorf("the one in flight: %+v, and %d wait", f, q.Depth())
		}
		time.Sleep(time.Second)
	})
}

// A request takes no place that has come free before one of its key that waits for it, and who waits hears of the place
// when the request in flight ends.
func TestLimitNobodyGoesBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := waiting.New(waiting.Config{Config: queue.Config{MaxRequests: 10, MaxBytes: 1 << 30}, Wait: time.Minute})
		x := newThrong(limit.Limits{InFlight: 1}, q)
		first, _ := x.keys["team"].Enter(time.Now()) // its end tells nobody
		var order []int
		var gaps []time.Duration
		var ended time.Time
		var all sync.WaitGroup
		come := func(i int) {
			all.Go(func() {
				if f := x.ask(t.Context(), rand.New(rand.NewPCG(1, 1))); f != nil {
					t.Errorf("request %d: %+v", i, f)
				}
				x.mu.Lock()
				defer x.mu.Unlock()
				order = append(order, i)
				if u := x.used[len(x.used)-1]; i > 0 {
					gaps = append(gaps, u.at.Sub(ended))
				}
				ended = time.Now()
			})
			synctest.Wait()
		}
		come(0)
		first.End(time.Now())
		for i := 1; i < 4; i++ {
			come(i)
		}
		all.Wait()
		if !slices.Equal(order, []int{0, 1, 2, 3}) {
			t.Errorf("served in the order %v", order)
		}
		for i, w := range gaps {
			if w > 0 {
				t.Errorf("request %d had its place %v after the one before had ended", i+1, w)
			}
		}
		time.Sleep(time.Second) // the queue's tick
	})
}

// A request that leaves its place for a limit of its key waits at the next one for the rest of its time alone.
func TestASecondPlaceEndsWithTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := waiting.New(waiting.Config{Config: queue.Config{MaxRequests: 2, MaxBytes: 1 << 30}, Wait: 5 * time.Second})
		began, place := time.Now(), &Place{meter: waits{}, in: &message.Inbound{}}
		enter := func() {
			w := &waiting.Wait{Before: place.Before}
			w.Cost, w.Weight = 1, 1
			if f := place.Enter(q, w, false, time.Time{}, 0); f != nil {
				t.Fatal(f)
			}
			if place.Wait.AtOnce() {
				place.Wait.Blocked(false, time.Now())
			}
		}
		enter()
		time.Sleep(3 * time.Second)
		place.Leave()
		enter()
		for place.Await(t.Context()) == nil {
			place.Wait.Blocked(false, time.Now())
		}
		if took := time.Since(began); took != 5*time.Second {
			t.Errorf("it waited for %v in all; want 5 s", took)
		}
		if told := place.in.Seen.Queued.Waited; told != 5*time.Second {
			t.Errorf("its record says that it waited for %v; want 5 s, at both places", told)
		}
		time.Sleep(time.Second) // the queue's tick
	})
}
