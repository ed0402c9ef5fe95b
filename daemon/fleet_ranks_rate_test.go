package daemon

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/warmpath/warmpath/cache/tier"
	"github.com/warmpath/warmpath/daemon/fleet/judge"
	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/lab/vllmsim/engine"
	"github.com/warmpath/warmpath/daemon/request/prompt"
	"github.com/warmpath/warmpath/daemon/request/route"
	"github.com/warmpath/warmpath/daemon/request/session"
	"github.com/warmpath/warmpath/host"
	"github.com/warmpath/warmpath/plugins"
)

// rankLab runs a pool against engines in virtual time: workers of some ranks each, and chats.
type rankLab struct {
	t       *testing.T
	pool    *route.Pool
	engines [][]*engine.Engine // by worker and rank
	numbers map[string]uint64  // of the workers, by URL
	named   bool               // chats name their session
	pinned  bool               // the router names the rank; else the worker balances by itself
	began   time.Time
	rng     *rand.Rand

	due       []*chatTurn // in order of time
	same, all int         // turns at the worker of the turn before, and turns after the first
}

// chatTurn is the next turn of a chat.
type chatTurn struct {
	at     time.Time
	chat   int
	turn   int
	text   string
	before string // the worker of the turn before
	choice route.Choice
	trip   route.Trip
	seq    engine.Sequence
}

const (
	labChats = 80
	labTurns = 7
	labThink = 6.0 // seconds between two turns, on average
)

// watchNumbers notes the numbers of workers.
type watchNumbers map[string]uint64

func (w watchNumbers) Watch(id uint64, url, _ string) { w[url] = id }
func (watchNumbers) WatchHealth(uint64)               {}
func (watchNumbers) Unwatch(uint64)                   {}
func (watchNumbers) CheckSoon(uint64)                 {}
func (watchNumbers) ScrapeSoon(uint64)                {}
func (watchNumbers) ListSoon(uint64)                  {}

// rankFleet is workers of some ranks each.
type rankFleet struct {
	workers, ranks int
	pinned         bool
}

// newRankLab makes a fleet. Call it in a bubble of time.
func newRankLab(t *testing.T, s *host.Strategy, store session.Store, f rankFleet) *rankLab {
	l := &rankLab{t: t, named: s.Name() == "session", pinned: f.pinned, began: time.Now(), numbers: map[string]uint64{},
		rng: rand.New(rand.NewPCG(1, 2))}
	var specs []worker.Spec
	for i := range f.workers {
		specs = append(specs, worker.Spec{ID: fmt.Sprint("w", i), URL: fmt.Sprint("http://w", i)})
		if !f.pinned {
			specs[i].DataParallel = 1 // else the pool learns it
		}
		var own []*engine.Engine
		for range f.ranks {
			e, err := engine.New(engine.Config{KVTokens: 32 << 10, ShowEvery: time.Hour})
			if err != nil {
				t.Fatal(err)
			}
			own = append(own, e)
		}
		l.engines = append(l.engines, own)
	}
	l.pool = route.New(route.Config{Name: "lab", Sessions: session.On(store, session.Config{Pool: "lab"}), Began: l.began,
		Reason:  plugins.ReasonText,
		Workers: worker.Config{Workers: specs, Watcher: watchNumbers(l.numbers)}})
	l.pool.Strategy.Replace(s)
	for i := range specs { // in order, or the slots of a run are not those of the next
		id := l.numbers[specs[i].URL]
		if f.pinned {
			l.pool.Workers.Counted(id, f.ranks, l.began)
		}
		l.pool.Workers.Healthy(id, l.began)
	}
	l.scrape()
	return l
}

// scrape reports the metrics of all engines.
func (l *rankLab) scrape() {
	for i, own := range l.engines {
		var p worker.Page
		for _, e := range own {
			s := e.Stats()
			m := worker.Metrics{Running: s.Running, Waiting: s.Waiting, Usage: s.KVUsage(),
				Capacity: s.Blocks * engine.BlockTokens, Block: engine.BlockTokens}
			p.Engines = append(p.Engines, m)
			p.Running, p.Waiting, p.Capacity = p.Running+m.Running, p.Waiting+m.Waiting, p.Capacity+m.Capacity
			p.Usage, p.Block = p.Usage+m.Usage/float64(len(own)), m.Block
		}
		l.pool.Workers.Scraped(l.numbers[fmt.Sprint("http://w", i)], p, time.Now())
	}
	l.pool.Tick(time.Now())
}

// words returns text of so many tokens.
func (l *rankLab) words(tokens int) string { return engine.TextOfTokens(l.rng.Uint64(), tokens) }

// run runs all chats to their end.
func (l *rankLab) run() {
	system := l.words(300)
	for i := range labChats {
		l.later(&chatTurn{chat: i, at: l.began.Add(time.Duration(l.rng.Float64() * 60 * float64(time.Second))),
			text: system + l.words(500+l.rng.IntN(1500))})
	}
	for nextScrape := l.began.Add(time.Second); ; {
		next, busy := nextScrape, len(l.due) > 0
		if busy && l.due[0].at.Before(next) {
			next = l.due[0].at
		}
		for _, own := range l.engines {
			for _, e := range own {
				if at, ok := e.NextEvent(); ok {
					busy = true
					if t := l.began.Add(at); t.Before(next) {
						next = t
					}
				}
			}
		}
		if !busy {
			return
		}
		time.Sleep(time.Until(next))
		now := time.Now()
		for _, own := range l.engines {
			for _, e := range own {
				for _, ev := range e.Advance(now.Sub(l.began)) {
					l.show(ev)
				}
			}
		}
		for len(l.due) > 0 && !l.due[0].at.After(now) {
			c := l.due[0]
			l.due = l.due[1:]
			l.send(c, now)
		}
		if !nextScrape.After(now) {
			l.scrape()
			nextScrape = now.Add(time.Second)
		}
	}
}

// later puts a turn into the order of time.
func (l *rankLab) later(c *chatTurn) {
	i, _ := slices.BinarySearchFunc(l.due, c, func(a, b *chatTurn) int { return a.at.Compare(b.at) })
	l.due = slices.Insert(l.due, i, c)
}

// send routes a turn.
func (l *rankLab) send(c *chatTurn, now time.Time) {
	r, err := new(prompt.Parser).Parse(prompt.KindOf("POST", "/v1/completions"),
		fmt.Appendf(nil, `{"model":"m","stream":true,"max_tokens":60,"prompt":%q}`, c.text))
	if err != nil {
		l.t.Fatal(err)
	}
	ask := &route.Ask{Prompt: r, Turn: l.pool.Arrive("m", nil, now), At: now}
	if l.named {
		ask.Claim = route.Claim{Key: session.Name{Kind: session.Key, ID: fmt.Sprint("chat ", c.chat)}, Binds: true}
	}
	if v := l.pool.Choose(&c.choice, ask); v != route.Chosen {
		l.t.Fatal(v)
	}
	c.choice.Bind()
	to, _ := c.choice.Next(now)
	if !c.choice.Send(&c.trip, to, nil, now) {
		l.t.Fatal("not sent")
	}
	at := to.Worker.ID()
	if c.turn > 0 {
		l.all++
		if at == c.before {
			l.same++
		}
	}
	c.before = at
	c.seq = engine.NewSequence(engine.AppendTokens(nil, c.text), "", 0, engine.BlockTokens)
	c.seq.Owner, c.seq.MaxTokens = c, 60
	if err := l.engine(to.Worker).Submit(now.Sub(l.began), &c.seq); err != nil {
		l.t.Fatal(err)
	}
}

// engine is where a request to the worker ends up.
func (l *rankLab) engine(w *worker.Worker) *engine.Engine {
	var i int
	fmt.Sscanf(w.Endpoint(), "w%d", &i)
	own := l.engines[i]
	if l.pinned {
		return own[w.Rank()]
	}
	load := func(e *engine.Engine) int { s := e.Stats(); return 4*s.Waiting + s.Running }
	return slices.MinFunc(own, func(a, b *engine.Engine) int { return cmp.Compare(load(a), load(b)) })
}

// show tells the pool what happened to a turn.
func (l *rankLab) show(ev engine.Event) {
	c := ev.Seq.Owner.(*chatTurn)
	at := l.began.Add(ev.At)
	switch ev.Kind {
	case engine.FirstToken:
		c.trip.FirstByte(at)
	case engine.Finished:
		c.trip.End(&judge.Outcome{Kind: judge.Answered, Tokens: c.seq.OutputTokens()}, route.End{Status: 200, At: at})
		c.choice.Release()
		if c.turn+1 < labTurns {
			think := time.Duration(l.rng.ExpFloat64() * labThink * float64(time.Second))
			l.later(&chatTurn{at: at.Add(think), chat: c.chat, turn: c.turn + 1, before: c.before,
				text: c.text + c.seq.Reply.Text(c.seq.OutputTokens()) + l.words(100+l.rng.IntN(300))})
		}
	}
}

// rates returns the hit rate of all engines and the share of turns at the worker of the turn before, in percent.
func (l *rankLab) rates() (hit, stay float64) {
	hits, all := int64(0), int64(0)
	for _, own := range l.engines {
		for _, e := range own {
			s := e.Stats()
			hits, all = hits+s.CachedTokens, all+s.QueriedTokens
		}
	}
	return 100 * float64(hits) / float64(all), 100 * float64(l.same) / float64(l.all)
}

// TestHitRateOfRanks: two workers of four ranks find as much in their caches as eight workers of one, and their chats
// stay with their rank. Beside it the same two workers where the rank is left to them.
func TestHitRateOfRanks(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	h, err := host.New(ctx, host.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close(ctx)
	for _, strategy := range []string{"prefixaware", "kvaware", "session"} {
		wasm, err := plugins.Builtin(strategy)
		if err != nil {
			t.Fatal(err)
		}
		s, err := h.Load(ctx, strategy, wasm, host.Options{PickTime: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		run := func(f rankFleet) (hit, stay float64) {
			store, err := tier.New(tier.Config{MaxBytes: 1 << 20})
			if err != nil {
				t.Fatal(err)
			}
			defer store.Close()
			synctest.Test(t, func(t *testing.T) {
				l := newRankLab(t, s, store, f)
				l.run()
				hit, stay = l.rates()
			})
			return hit, stay
		}
		eight, eightStay := run(rankFleet{workers: 8, ranks: 1, pinned: true})
		ranks, ranksStay := run(rankFleet{workers: 2, ranks: 4, pinned: true})
		without, withoutStay := run(rankFleet{workers: 2, ranks: 4})
		line := fmt.Sprintf("%s: hit rate of 8 workers of one %.1f %% (%.0f %% of turns stay), of 2 workers of four ranks "+
			"%.1f %% (%.0f %%), without the header %.1f %% (%.0f %% at the worker)",
			strategy, eight, eightStay, ranks, ranksStay, without, withoutStay)
		t.Log(line)
		if ranks < eight-2 || ranksStay < 95 {
			t.Errorf("%s; want the ranks within 2 points of the eight, and 95 %% of turns to stay", line)
		}
		if without > ranks-20 {
			t.Errorf("%s; the header makes no difference", line)
		}
	}
}
