package metrics

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"

	"github.com/warmpath/warmpath/daemon/fleet/judge"
	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/request/epoch"
	"github.com/warmpath/warmpath/daemon/request/journal"
	"github.com/warmpath/warmpath/daemon/request/message"
	"github.com/warmpath/warmpath/daemon/request/record"
	"github.com/warmpath/warmpath/daemon/request/route"
)

func seenOf(pool string, first time.Duration, u record.Usage, believed int) *message.Seen {
	return &message.Seen{Stream: true, Record: record.Record{Pool: pool, Model: "m", Strategy: "s", FirstByte: first, Usage: u,
		Believed: believed}}
}

// The last hour falls into spans. Older counts are gone, also where their span is used again.
func TestTheLastHour(t *testing.T) {
	var r Recent
	start := time.Unix(1_800_000_000, 0)
	u := record.Usage{Known: true, Prompt: 100, Output: 10, Cached: 60, CachedKnown: true}
	for i := range 100 {
		r.arrived("p", start)
		r.firstOutput(seenOf("p", time.Duration(i+1)*10*time.Millisecond, u, 0), start)
		r.ended(seenOf("p", 0, u, 64), i%10 != 0, start)
	}
	r.turnedAway("p", true, start)
	all := r.Hour(start, "p")
	s := all[len(all)-1]
	if len(all) != 120 || s.Arrived != 100 || s.Failed != 10 || s.Refused != 1 || s.Streams != 100 || s.Prompt != 10_000 ||
		s.Known != 10_000 || s.Cached != 6000 || s.Believed != 6400 || s.Output != 1000 {
		t.Errorf("%d spans, the last %+v", len(all), s)
	}
	if s.TTFT50 < .5 || s.TTFT50 > .5*math.Sqrt2 || s.TTFT99 < .99 || s.TTFT99 > .99*math.Sqrt2 {
		t.Errorf("p50 %v of 0.5 s, p99 %v of 0.99 s", s.TTFT50, s.TTFT99)
	}
	later := r.Hour(start.Add(59*time.Minute), "p")
	if later[1].Arrived != 100 || !later[1].At.Equal(start) {
		t.Errorf("59 minutes later: %+v", later[:3])
	}
	for _, s := range r.Hour(start.Add(61*time.Minute), "p") {
		if s.Arrived != 0 {
			t.Errorf("after an hour: %+v", s)
		}
	}
	r.arrived("p", start.Add(time.Hour)) // the same place in the ring
	all = r.Hour(start.Add(time.Hour), "p")
	if s := all[len(all)-1]; s.Arrived != 1 || s.Streams != 0 {
		t.Errorf("%+v", s)
	}
	r.forget("p")
	if s := r.Hour(start, "p")[119]; s.Arrived != 0 {
		t.Errorf("a pool that is gone has %+v", s)
	}
}

func TestFirstOutputsFallIntoBuckets(t *testing.T) {
	f := func(d time.Duration, want int) {
		t.Helper()
		if got := ttftBucket(d); got != want {
			t.Errorf("%s: bucket %d; want %d", d, got, want)
		}
	}
	f(0, 0)
	f(-time.Second, 0)
	f(time.Microsecond, 0)
	f(time.Millisecond, 0)
	f(2*time.Millisecond, 2)
	f(2100*time.Microsecond, 3)
	f(time.Hour, ttftBuckets-1)
}

// The demand is the queued work, and the recently refused requests at the mean work of those sent.
func TestDemand(t *testing.T) {
	f := func(stats []worker.Stats, refused, each, want float64) {
		t.Helper()
		if got := demand(stats, refused, each); math.Abs(got-want) > 1e-9 {
			t.Errorf("%+v, %v refused of %v s: %v; want %v", stats, refused, each, got, want)
		}
	}
	f(nil, 0, 1, 0)
	f(nil, 3, 1, 3)
	up := worker.Stats{Up: true, Wait: 2}
	f([]worker.Stats{up, up}, 0, 3, 4)
	f([]worker.Stats{up, up}, 5, 3, 4+5*3)
	f([]worker.Stats{up, {Wait: 100}}, 5, 3, 2+5*3)
}

// The workers wanted are those that would have had a place for all that came.
func TestWanted(t *testing.T) {
	f := func(what string, up, all int, refused, came float64, want int) {
		t.Helper()
		if got := wanted(up, all, refused, came); got != want {
			t.Errorf("%s: %d workers are wanted; want %d", what, got, want)
		}
	}
	f("no requests", 8, 8, 0, 0, 8)
	f("none refused", 8, 8, 0, 300, 8)
	f("one refused, by chance", 8, 8, .9, 300, 8)
	f("more than half refused", 8, 8, 175, 323, 18)
	f("one in a hundred refused", 8, 8, 3, 300, 9)
	f("nearly all refused, and repeated again and again", 8, 8, 5000, 5010, 32)
	f("all refused, while all are full", 2, 8, 50, 50, 8)
	f("none is up", 0, 8, 300, 300, 8)
}

// A request that is refused before its body is read, as every worker of every pool is full, counts as a refusal of its
// pool like one whose body was read: in the demand, in the page's minute and by key. If there are several pools they
// take turns, as nobody knows which one was meant.
func TestCrowded(t *testing.T) {
	pool := func(name string) *epoch.Pool {
		p := new(epoch.Pool)
		p.Pool = route.New(route.Config{Name: name})
		return p
	}
	f := func(pools []*epoch.Pool, name string, refused float64) {
		t.Helper()
		m := NewMetrics("test")
		for range 4 {
			s := seenOf("", 0, record.Usage{}, 0)
			s.Key = "team"
			m.Crowded(s, pools)
			if s.Pool != name {
				t.Errorf("of %d pools the request gets %q; want %q", len(pools), s.Pool, name)
			}
		}
		for _, p := range pools {
			l, _ := m.recent.lacking(p.Name, time.Now())
			n, came := l.refused, l.came
			if math.Abs(n-refused) > .1 || math.Abs(came-refused) > .1 || m.full.of(p.Name) != uint64(refused) {
				t.Errorf("%d pools: %s refused %.1f of %.1f, the log knows %d; want %v", len(pools), p.Name, n, came,
					m.full.of(p.Name), refused)
			}
		}
		if keys, err := m.Keys(nil); err != nil || len(keys) != 1 || keys[0].Refused != 4 || keys[0].Arrived != 4 {
			t.Errorf("keys %+v, %v; want 4 of 4 refused", keys, err)
		}
	}
	f([]*epoch.Pool{pool("p")}, "p", 4)
	f([]*epoch.Pool{pool("p"), pool("q")}, "", 2)
}

// TestRefusedIsWhatTheRouterRefuses: a client that leaves is not refused, and a request that the workers leave without an
// answer has failed there: neither says that there are too few of them.
func TestRefusedIsWhatTheRouterRefuses(t *testing.T) {
	f := func(fault message.Fault, refused, failed uint32, wants float64) {
		t.Helper()
		m := NewMetrics("test")
		m.Refused(seenOf("p", 0, record.Usage{}, 0), fault, fault.Status, time.Second)
		now := time.Now()
		all := m.recent.Hour(now, "p")
		got := all[len(all)-1]
		got.Refused += all[len(all)-2].Refused // the half minute may just have ended
		got.Failed += all[len(all)-2].Failed
		l, _ := m.recent.lacking("p", now)
		if math.Round(l.refused) != wants {
			t.Errorf("%s: %v want another worker; want %v", fault.Code, l.refused, wants)
		}
		if got.Refused != refused || got.Failed != failed {
			t.Errorf("%s: %d refused, %d failed; want %d, %d", fault.Code, got.Refused, got.Failed, refused, failed)
		}
	}
	f(message.FaultFull, 1, 0, 1)
	f(message.FaultNoWorker, 1, 0, 1)
	f(message.FaultWeights, 1, 0, 0)
	f(message.FaultStopping, 1, 0, 0)
	f(message.FaultGone, 0, 0, 0)
	f(message.FaultUpstream, 0, 1, 0)
	f(message.FaultTimeout, 0, 1, 0)
	f(message.FaultDown, 0, 1, 0)
	f(message.FaultHidden, 0, 1, 0)
}

// TestFailedPrefillsBeginAtZero, so that an alert sees a rate of the first ones.
func TestFailedPrefillsBeginAtZero(t *testing.T) {
	m := NewMetrics("test")
	m.Prefilled("p", journal.PrefillDone)
	all, err := m.registry.Gather()
	i := slices.IndexFunc(all, func(f *dto.MetricFamily) bool { return f.GetName() == "warmpath_prefills_total" })
	if err != nil || len(all[i].Metric) != 5 {
		t.Errorf("%v, %v", all[i], err)
	}
}

func TestRefusalsFade(t *testing.T) {
	var r Recent
	start := time.Unix(1_800_000_000, 0)
	r.turnedAway("p", true, start)
	r.turnedAway("p", false, start)
	r.turnedAway("", true, start)
	r.arrived("p", start)
	l, _ := r.lacking("p", start.Add(30*time.Second))
	if want := math.Exp(-1); math.Abs(l.refused-want) > 1e-9 || math.Abs(l.came-want) > 1e-9 {
		t.Errorf("%+v; want %v of as many", l, want)
	}
	if l, _ := r.lacking("q", start); l != (lack{}) {
		t.Errorf("a pool without requests: %+v", l)
	}
}

// Tokens are counted by pool, model and key. A client's model name that no worker has answered for becomes no label.
func TestTokensAreCounted(t *testing.T) {
	m := NewMetrics("test")
	s := seenOf("p", 0, record.Usage{Known: true, Prompt: 100, Output: 10, Cached: 60, CachedKnown: true}, 70)
	s.Key, s.Worker = "team", "w"
	m.Arrived(s)
	m.Ended(s, journal.End{Status: 200, Outcome: judge.Outcome{Kind: judge.Answered}})
	m.Arrived(s)
	m.Ended(s, journal.End{Status: 400, Outcome: judge.Outcome{Kind: judge.Answered}})
	for i := range 2 * maxNames {
		m.Arrived(&message.Seen{Record: record.Record{Pool: "p", Model: fmt.Sprint("made-up-", i)}})
	}
	got := map[string]float64{}
	families, err := m.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, x := range f.Metric {
			name := f.GetName()
			for _, l := range x.Label {
				name += " " + l.GetValue()
			}
			if h := x.GetHistogram(); h != nil {
				got[name] = h.GetSampleSum()
			} else {
				got[name] = x.GetCounter().GetValue()
			}
		}
	}
	for name, want := range map[string]float64{
		"warmpath_prompt_tokens_total team m p":        100,
		"warmpath_prompt_cached_tokens_total team m p": 60,
		"warmpath_output_tokens_total team m p":        10,
		"warmpath_belief_error_ratio p s":              .1,
		"warmpath_arrivals_total m p":                  1,
		"warmpath_arrivals_total unknown p":            1 + 2*maxNames,
	} {
		if math.Abs(got[name]-want) > 1e-9 {
			t.Errorf("%s is %v; want %v", name, got[name], want)
		}
	}
	m.series.forget(owner{pool: "p"})
	if n := seriesOf(t, m, ""); n != 0 {
		t.Errorf("%d series of the pool are left", n)
	}
}

func TestRecentUnderLoad(t *testing.T) {
	var r Recent
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for i := range 1000 {
				now := time.Unix(int64(1_800_000_000+i), 0)
				r.arrived("p", now)
				r.picked(seenOf("p", 0, record.Usage{}, 0), now)
				r.ended(seenOf("p", 0, record.Usage{}, 0), true, now)
				r.turnedAway("p", true, now)
				if i%100 == 0 {
					r.Hour(now, "p")
					r.forget("p")
				}
			}
		})
	}
	all.Wait()
}

func BenchmarkRecent(b *testing.B) {
	var r Recent
	s := seenOf("p", 10*time.Millisecond, record.Usage{Known: true, Prompt: 10}, 0)
	b.ReportAllocs()
	for b.Loop() {
		now := time.Now()
		r.arrived("p", now)
		r.picked(s, now)
		r.firstOutput(s, now)
		r.ended(s, true, now)
	}
}

// The load of a role: the workers that are up, and what waits for one. Prefillers that are gone are wanted by the
// prompts that found none.
func TestRoleLoad(t *testing.T) {
	f := func(what string, of []worker.Stats, l lack, want RoleLoad) {
		t.Helper()
		want.Role, want.Workers = "prefill", len(of)
		if got := roleLoad("prefill", of, l, .5); got != want {
			t.Errorf("%s: %+v; want %+v", what, got, want)
		}
	}
	busy := worker.Stats{Up: true, Wait: 3, InUse: 1.25}
	full := worker.Stats{Up: true, InUse: .875}
	down := worker.Stats{Wait: 9, InUse: 1}
	f("none", nil, lack{}, RoleLoad{})
	f("one that is behind, one that is full, one that is down", []worker.Stats{busy, full, down}, lack{came: 100},
		RoleLoad{Up: 2, Demand: 3, Busy: 1.25 + .875, Wanted: 2})
	f("some found no place", []worker.Stats{busy}, lack{refused: 50, came: 100}, RoleLoad{Up: 1, Demand: 3 + 25, Busy: 1.25, Wanted: 2})
	f("all are gone", []worker.Stats{down}, lack{refused: 4, came: 4}, RoleLoad{Demand: 2, Wanted: 1})
	f("scaled to zero, and one waits", nil, lack{waits: 1}, RoleLoad{Demand: .5, Wanted: 1})
}

// What became of prompts that were to have a prefiller counts for prefillers, and for nobody else.
func TestLackOfPrefillers(t *testing.T) {
	m := NewMetrics("test")
	for _, r := range []journal.Prefilled{journal.PrefillDone, journal.PrefillNone, journal.PrefillNone, journal.PrefillLong,
		journal.PrefillFreed} {
		m.Prefilled("p", r)
	}
	answers, prompts := m.recent.lacking("p", time.Now())
	if answers != (lack{}) || math.Abs(prompts.refused-2) > .1 || math.Abs(prompts.came-3) > .1 {
		t.Errorf("%+v, and of prompts %+v", answers, prompts)
	}
}
