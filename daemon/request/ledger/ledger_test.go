package ledger

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/lendtest"
	"github.com/warmpath/warmpath/daemon/lab/redistest"
	"github.com/warmpath/warmpath/daemon/request/limit"
)

// open makes a router's ledger, with a book of these limits.
func open(t *testing.T, s *redistest.Server, l map[string]limit.Limits) (*Ledger, map[string]*limit.Key) {
	t.Helper()
	x, err := Open(Config{Redis: s.URL(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { x.c.Close() })
	return x, x.Configure(t.Context(), l, time.Now())
}

// TestWithoutRedis: no Redis is no ledger, which shares nothing.
func TestWithoutRedis(t *testing.T) {
	x, err := Open(Config{})
	if x == nil || err != nil || x.Lost() {
		t.Errorf("got %v, %v", x, err)
	}
	x.Run(context.Background())
	if _, err := Open(Config{Redis: "nonsense"}); err == nil {
		t.Error("a URL that is none is taken")
	}
}

// TestTheScriptLendsAsTheRoom: Redis does the sums of lendtest.Lend, for any amounts at three routers.
func TestTheScriptLendsAsTheRoom(t *testing.T) {
	redis := redistest.Start(t)
	draw := rand.New(rand.NewPCG(1, 2))
	amount := func() float64 { return math.Round(draw.Float64()*draw.Float64()*1e9) / 1e3 }
	type held struct {
		amounts limit.Amounts
		wants   [limit.Count]bool
	}
	x, _ := open(t, redis, nil)
	for round := range 200 {
		key, holds := fmt.Sprint("k", round), [3]held{}
		there := 1
		for i := range 9 {
			router := i % 3
			m := limit.Message{Key: key}
			for k := range m.Limits {
				m.Limits[k], m.Taken[k], m.Wants[k] = amount(), amount(), draw.IntN(3) == 0
			}
			var others held
			for of, h := range holds {
				for k := range h.amounts {
					if of != router {
						others.amounts[k] += h.amounts[k]
						others.wants[k] = others.wants[k] || h.wants[k]
					}
				}
			}
			there = max(there, min(i+1, 3))
			x.self = fmt.Sprint("r", router)
			got, err := x.c.Eval(t.Context(), lend, []string{x.prefix + key}, appendMessage([]any{x.self, 0}, &m, "")...).StringSlice()
			if err != nil {
				t.Fatal(err)
			}
			routers, lent, _, err := parse(got)
			if err != nil || routers != there {
				t.Fatalf("%d routers, %v; want %d", routers, err, there)
			}
			holds[router] = held{wants: m.Wants}
			for k := range lent {
				want := lendtest.Lend(lendtest.Told{Limit: m.Limits[k], Taken: m.Taken[k], Others: others.amounts[k],
					Wants: m.Wants[k], Wanted: others.wants[k], Tokens: limit.By(k) == limit.ByTokens, Routers: there})
				if math.Abs(lent[k]-want) > 1e-3 {
					t.Fatalf("round %d, router %d, limit %d of %+v beside %+v: %v; want %v", round, router, k, m, others, lent[k], want)
				}
				holds[router].amounts[k] = max(lent[k], m.Taken[k])
			}
		}
	}
}

// TestGarbageIsRemoved: what no router wrote at a key, or one that is gone, counts for nothing.
func TestGarbageIsRemoved(t *testing.T) {
	redis := redistest.Start(t)
	x, _ := open(t, redis, nil)
	key := x.prefix + "team"
	stale := strconv.FormatInt(time.Now().Add(-time.Minute).UnixMilli(), 10) + " 9 9 9 1 1 1"
	x.c.HSet(t.Context(), key, "gone", stale, "short", "1 2", "text", "a b c d e f g", "none", "")
	m := limit.Message{Key: "team", Limits: limit.Amounts{10, 10, 10}}
	got, err := x.c.Eval(t.Context(), lend, []string{key}, appendMessage([]any{x.self, 0}, &m, "")...).StringSlice()
	if err != nil {
		t.Fatal(err)
	}
	if routers, lent, _, err := parse(got); err != nil || routers != 1 || lent != (limit.Amounts{10, 10, 10}) {
		t.Errorf("%d routers, %v, %v", routers, lent, err)
	}
	if n := x.c.HLen(t.Context(), key).Val(); n != 1 {
		t.Errorf("%d fields are left", n)
	}
}

// FuzzParse: an answer that is none is refused, whatever stands in it.
func FuzzParse(f *testing.F) {
	f.Add("1 2 3 4 5 6 7")
	f.Add("0 1 1 1 1 1 1")
	f.Add("1 NaN Inf -1 0 0 0")
	f.Add("1 1e308 1e400 0x10 0 0 0")
	f.Fuzz(func(t *testing.T, text string) {
		answer := strings.Split(text, " ")
		if len(answer) != 7 {
			return
		}
		routers, lent, owed, err := parse(answer)
		bad := slices.ContainsFunc(slices.Concat(lent[:], owed[:]), func(n float64) bool { return !(n >= 0 && n < 1e18) })
		if err == nil && (routers < 1 || routers > maxRouters || bad) {
			t.Errorf("%q: %d, %v", text, routers, lent)
		}
	})
}

// TestTwoRoutersOneLimit: two routers that share a Redis let a key in as one would, while each tries all the time.
// Without the Redis each gives out half, and when it is back they share again.
func TestTwoRoutersOneLimit(t *testing.T) {
	redis := redistest.Start(t)
	l := map[string]limit.Limits{"team": {Requests: 600}, "other": {InFlight: 6}}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var routers [2]map[string]*limit.Key
	var ledgers [2]*Ledger
	for i := range routers {
		ledgers[i], routers[i] = open(t, redis, l)
		go ledgers[i].Run(ctx)
	}
	var let atomic.Int64
	flood := func(d time.Duration) int64 {
		before := let.Load()
		for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
			for i := range routers {
				if s, no := routers[i]["team"].Enter(time.Now()); no == nil {
					s.Sent()
					s.End(time.Now())
					let.Add(1)
				}
			}
		}
		return let.Load() - before
	}
	flood(time.Second) // until they know each other
	for i := range routers {
		if n := routersOf(ledgers[i]); n != 2 {
			t.Errorf("router %d knows of %d routers", i, n)
		}
	}
	var held [2][]*limit.Spending
	for range 10 {
		for i := range routers {
			for {
				s, no := routers[i]["other"].Enter(time.Now())
				if no != nil {
					break
				}
				s.Sent()
				held[i] = append(held[i], s)
			}
		}
		time.Sleep(every)
	}
	if a, b := len(held[0]), len(held[1]); a+b != 6 {
		t.Errorf("%d and %d in flight; want 6 in all", a, b)
	}
	redis.Signal(syscall.SIGSTOP)
	eventually(t, "both have found out", func() bool { return ledgers[0].Lost() && ledgers[1].Lost() })
	redis.Signal(syscall.SIGCONT)
	eventually(t, "both have it back", func() bool { return !ledgers[0].Lost() && !ledgers[1].Lost() })
}

// routersOf returns how many routers a ledger's book knows.
func routersOf(l *Ledger) int {
	m := limit.Message{}
	got, err := l.c.Eval(context.Background(), lend, []string{l.prefix}, appendMessage([]any{l.self, 0}, &m, "")...).StringSlice()
	if err != nil {
		return 0
	}
	n, _, _, _ := parse(got)
	return n
}

// eventually waits until it holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within 20 s: %s", what)
		}
	}
}

// spend lets in as many requests of a key as it may have now, and returns how many.
func spend(k *limit.Key) (n int) {
	for {
		s, no := k.Enter(time.Now())
		if no != nil {
			return n
		}
		s.Sent()
		s.End(time.Now())
		n++
	}
}

// tell sends a router's messages once, as each second: those of keys that nobody uses, too.
func tell(t *testing.T, l *Ledger) {
	t.Helper()
	l.mu.Lock()
	l.turn = 0
	l.mu.Unlock()
	if err := l.exchange(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestARolloutGivesNothingAgain: what a router had taken that is gone stays taken for one that is new, also if Redis was
// emptied meanwhile beside another router, and its debt too.
func TestARolloutGivesNothingAgain(t *testing.T) {
	redis := redistest.Start(t)
	l := map[string]limit.Limits{"team": {Requests: 5}}
	gone, key := open(t, redis, l)
	if n := spend(key["team"]); n != 5 {
		t.Fatalf("%d of 5 requests", n)
	}
	tell(t, gone)
	if _, next := open(t, redis, l); spend(next["team"]) != 0 {
		t.Error("a new router gives out what another one has given out")
	}
	stays, _ := open(t, redis, l)
	time.Sleep(3200 * time.Millisecond) // the first one is gone
	tell(t, stays)
	for _, empty := range []bool{false, true} {
		if empty {
			stays.c.FlushAll(t.Context())
		}
		tell(t, stays)
		tell(t, stays)
		if _, next := open(t, redis, l); spend(next["team"]) != 0 {
			t.Errorf("what a router had taken that is gone is forgotten; Redis emptied: %v", empty)
		}
	}
}

// TestFieldsOfOthers: what no router can have written is removed, whatever it is; another version's numbers count, and
// an older version's as long as it is there.
func TestFieldsOfOthers(t *testing.T) {
	redis := redistest.Start(t)
	now := func() string { return strconv.FormatInt(time.Now().UnixMilli(), 10) }
	for _, c := range []struct {
		about, field string
		lent         float64 // of 10 requests
		left         bool
	}{
		{about: "no number", field: "nan 9 9 9 1 1 1", lent: 10},
		{about: "an amount without end", field: now() + " 0 inf 0 0 0 0", lent: 10},
		{about: "below zero", field: now() + " 0 -9 0 0 0 0", lent: 10},
		{about: "written tomorrow", field: "9e14 9 9 9 1 1 1", lent: 10},
		{about: "a debt of years", field: now() + " 0 0 0 0 0 0 v2:99999:0:0:0", lent: 10},
		{about: "a debt that is none", field: now() + " 0 0 0 0 0 0 v2:nan:0:0:0", lent: 10},
		{about: "an older version", field: now() + " 0 6 0 0 0 0", lent: 2, left: true},
		{about: "a later version", field: now() + " 0 6 0 0 0 0 v3:what=ever", lent: 2, left: true},
		{about: "a later version with other numbers", field: "v3 " + now() + " 6 v3:", lent: 10, left: true},
	} {
		x, _ := open(t, redis, nil)
		key := x.prefix + strings.ReplaceAll(c.about, " ", "-")
		x.c.HSet(t.Context(), key, "other", c.field)
		m := limit.Message{Limits: limit.Amounts{10, 10, 10}}
		got, err := x.c.Eval(t.Context(), lend, []string{key}, appendMessage([]any{x.self, 1}, &m, "")...).StringSlice()
		if err != nil {
			t.Fatal(err)
		}
		_, lent, owed, err := parse(got)
		left := x.c.HLen(t.Context(), key).Val() == 2
		if err != nil || lent[limit.ByRequests] != c.lent || owed != (limit.Amounts{}) || left != c.left {
			t.Errorf("%s: lent %v, owed %v, left %v, %v; want %v, %v", c.about, lent, owed, left, err, c.lent, c.left)
		}
	}
}
