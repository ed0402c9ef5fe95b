package score_test

import (
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/warmpath/warmpath/sdk"
	"github.com/warmpath/warmpath/sdk/abi"
	"github.com/warmpath/warmpath/sdk/score"
	"github.com/warmpath/warmpath/sdk/sdktest"
)

type strategy struct {
	rule score.Rule
}

func (s *strategy) Route(r *sdk.Request, workers []sdk.Worker) sdk.Decision {
	return s.rule.Route(r, workers)
}

func of(r abi.Row) float64 {
	if r.Weight > 0 {
		return float64(r.Weight)
	}
	return 1
}

// room is the tokens of KV that a row has left for a request.
func room(r *abi.Row) float64 {
	if r.KVTokens == 0 {
		return math.Inf(1)
	}
	return .9*float64(r.KVTokens) - float64(r.HeldTokens) + float64(r.SharedTokens)
}

// formula is the score as doc.go writes it, term by term, and without a thought for speed. work is its Y.
func formula(h *abi.Header, rows []abi.Row, i int) (score, work float64) {
	var wait, flight, weight, held, kv, slow, load float64
	alike, least := true, math.Inf(1)
	over := func(r *abi.Row) float64 {
		return max(0, float64(h.PromptTokens)+float64(h.ExpectedOutput)-room(r))
	}
	for _, r := range rows {
		least = min(least, over(&r))
		wait, flight, weight = wait+r.Wait, flight+float64(r.InFlight), weight+of(r)
		slow, load = slow+r.Slow, load+r.Load
		held, kv = held+float64(r.FlightTokens), kv+float64(r.KVTokens)
		alike = alike && r.Weight == 1 && r.State&abi.RowSlowStart == 0
	}
	requests := flight
	all := float64(len(rows))
	wait, slow, load, flight = wait/all, slow/all, load/all, flight/weight
	gate := 1.
	if alike && kv > 0 {
		gate = min(1, max(0, (held/kv-.1)/.3, (flight-8)/16))
	}
	r := rows[i]
	l, c1, c2, b := float64(h.PromptTokens), float64(h.C1), float64(h.C2), float64(h.BlockTokens)
	bw1, bw2, m := float64(h.InvBWL1), float64(h.InvBWL2), r.Slow
	h0, h1, h2 := float64(r.GPU)*b, float64(r.L1)*b, float64(r.L2)*b
	n := max(1, l-h0-h1-h2)
	bring := h1*bw1 + h2*bw2
	if bw1 == 0 {
		bring = 0
	}
	p, mean := m*(c1*n+c2*n*(l-n/2))+bring, slow*(c1*n+c2*n*(l-n/2))
	again := m * (c1 + c2*l/2)
	e := max(0, l-h0-float64(r.FreeGPU)) * float64(r.ReuseGPU)
	if bw1 == 0 {
		e *= again
	} else {
		back := again
		if bw2 > 0 {
			back = bw2
		}
		e = e*bw1 + max(0, l-h0-h1-float64(r.FreeL1))*float64(r.ReuseL1)*back
	}
	y := p + 2*e + float64(r.State>>16)/1000
	k := float64(h.Lambda) / (1 - min(.9, 1.3*load))
	mine := max(float64(r.InFlight), float64(r.FlightTokens)*requests/max(1, held)) / of(r)
	if r.State&abi.RowSlowStart != 0 {
		mine = 2*mine + flight + 2
	}
	tilt := .75 * gate * mine / max(1, flight)
	full := min(over(&r)-least, l) * again
	if h.Turn >= 1 && h.Turn <= 2 && (h.Turn < 2 || h.BestRow < 0 || h.BestRow != h.Last) && h.ExpectedTurns >= 5 && r.Lately > 0 && 30*r.Load/float64(r.Lately) <= 60 {
		full += float64(h.ExpectedTurns) * float64(r.InFlight) * 30 * r.Load / float64(r.Lately)
	}
	if r.State&abi.RowJoins != 0 && r.PendingTokens == 0 {
		k = 0
	}
	return 2*r.Wait*(1+.5*tilt) + 2*k*mean*(wait+mean) + (y+full)*(1+tilt) + r.Delay, y
}

// chosen is the row to choose by doc.go: of those that are equal to the one of the smallest score the first by flight,
// lately, sent and index. equals are all of them, scores everybody's.
func chosen(h *abi.Header, rows []abi.Row) (row int, equals []int, scores []float64) {
	b, work := 0, make([]float64, len(rows))
	scores = make([]float64, len(rows))
	for i := range rows {
		scores[i], work[i] = formula(h, rows, i)
		if scores[i] < scores[b]*(1-1e-10) {
			b = i
		}
	}
	best, alone := rows[b], 2*rows[b].Wait+work[b]
	per := func(n float64, r abi.Row) float64 { return n / of(r) }
	row = -1
	for i, r := range rows {
		far := int64(r.GPU+r.L1+r.L2) - int64(best.GPU+best.L1+best.L2)
		if left := room(&r); left < h.Need() && left < room(&best) {
			continue
		}
		if scores[i] > scores[b]+.15*alone || far < -1 || far > 1 || r.Pending > best.Pending || r.Delay > best.Delay ||
			work[i]/r.Slow > 1.01*work[b]/best.Slow ||
			per(float64(r.InFlight), r) > per(float64(best.InFlight), best) {
			continue
		}
		equals = append(equals, i)
		order := func(r abi.Row) []float64 {
			return []float64{per(float64(r.InFlight), r), per(float64(r.Lately), r), per(float64(r.Sent), r)}
		}
		if row < 0 || slices.Compare(order(r), order(rows[row])) < 0 {
			row = i
		}
	}
	return row, equals, scores
}

func TestChoosesByTheFormula(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	f, s := sdktest.NewFrame(1), &strategy{}
	tied := 0
	for n := range 20_000 {
		f.Randomize(rng, 1+rng.IntN(24))
		if n%2 == 0 {
			level(rng, f)
		}
		if n%8 > 5 {
			adapt(rng, f)
		}
		score.Price(&f.Header, f.Rows) // as a host does that was asked for the costs
		s.rule.ByCost = n%4 >= 2
		got := f.Run(t, s)
		row, equals, scores := chosen(&f.Header, f.Rows)
		if len(equals) > 1 {
			tied++
		}
		if got.Row != row {
			t.Fatalf("row %d, which scores %v; want %d, which scores %v, the first of %v",
				got.Row, scores[got.Row], row, scores[row], equals)
		}
		sorted := slices.Sorted(slices.Values(slices.Delete(slices.Clone(scores), row, row+1)))
		for place, row := range got.Order {
			if v, want := scores[row], sorted[place]; math.Abs(v-want) > 1e-9*want {
				t.Fatalf("alternative %d is row %d, which scores %v; want one of %v", place, row, v, want)
			}
		}
	}
	if tied < 2000 {
		t.Errorf("%d of 20,000 frames had equal rows: too few to hold the rule by", tied)
	}
}

// level makes a frame's rows nearly equal, as those of an idle fleet are.
func level(rng *rand.Rand, f *sdktest.Frame) {
	for i := range f.Rows {
		r := &f.Rows[i]
		worker, key, lately := r.Worker, r.Key, r.Lately
		*r = f.Rows[0]
		r.Worker, r.Key, r.Lately = worker, key, lately
		r.Slow *= 1 + .2*rng.Float64()
		r.InFlight += rng.Uint32N(2)
		r.Pending *= 1 + float32(rng.IntN(2))
		r.GPU = min(r.GPU+rng.Uint32N(3), f.Header.PromptBlocks-r.L1-r.L2)
	}
}

// A worker that is preferred stays preferred, or is equal to the one that is, when it is given what can only help. What
// it loses of its wait goes to another: the score knows the fleet's mean, and a lower mean helps some rows more than
// their own wait helps this one.
func TestMonotonic(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	f, s := sdktest.NewFrame(1), &strategy{}
	better := map[string]func(r *abi.Row, left uint32){
		"longer match": func(r *abi.Row, left uint32) { r.GPU += rng.Uint32N(left + 1) },
		"less wait":    func(r *abi.Row, _ uint32) { r.Wait *= rng.Float64() },
		"more free":    func(r *abi.Row, _ uint32) { r.FreeGPU += 1e5 * rng.Float32() },
		"more room":    func(r *abi.Row, _ uint32) { r.HeldTokens = uint32(float64(r.HeldTokens) * rng.Float64()) },
		"less reuse":   func(r *abi.Row, _ uint32) { r.ReuseGPU *= rng.Float32() },
		"faster":       func(r *abi.Row, _ uint32) { r.Slow *= rng.Float64() },
	}
	for _, name := range slices.Sorted(maps.Keys(better)) {
		change := better[name]
		for range 5_000 {
			f.Randomize(rng, 2+rng.IntN(14))
			f.Header.InvBWL1, f.Header.InvBWL2 = 0, 0
			for i := range f.Rows {
				f.Rows[i].L1, f.Rows[i].L2 = 0, 0
			}
			if _, equals, _ := chosen(&f.Header, f.Rows); len(equals) > 1 {
				continue // it won by what was sent lately
			}
			before := f.Run(t, s).Row
			r, was := &f.Rows[before], f.Rows[before]
			change(r, f.Header.PromptBlocks-r.GPU)
			next := &f.Rows[(before+1)%len(f.Rows)] // the fleet's means stay
			next.Wait, next.Slow = next.Wait+was.Wait-r.Wait, next.Slow+was.Slow-r.Slow
			if _, equals, _ := chosen(&f.Header, f.Rows); slices.Contains(equals, before) {
				continue
			}
			if after := f.Run(t, s).Row; after != before {
				t.Fatalf("%s: row %d was chosen, and row %d once %[2]d had become better", name, before, after)
			}
		}
	}
}

func TestTies(t *testing.T) {
	f := func(what string, want int, change func(rows []abi.Row)) {
		t.Helper()
		fr := sdktest.NewFrame(6)
		for i := range fr.Rows {
			fr.Rows[i].Sent = 10
		}
		change(fr.Rows)
		if got := fr.Run(t, &strategy{}); got.Row != want {
			t.Errorf("%s: row %d; want %d", what, got.Row, want)
		}
	}
	f("all equal: the index", 0, func(rows []abi.Row) {})
	f("fewest lately", 3, func(rows []abi.Row) {
		for i := range rows {
			rows[i].Lately = 2
		}
		rows[3].Lately, rows[3].Sent = 1.5, 99
	})
	f("fewest lately for its weight", 5, func(rows []abi.Row) {
		for i := range rows {
			rows[i].Lately = 2
		}
		rows[5].Weight, rows[5].Lately = 4, 7
	})
	f("fewest sent", 4, func(rows []abi.Row) { rows[4].Sent = 9 })
	f("fewest sent for its weight", 5, func(rows []abi.Row) { rows[5].Weight, rows[5].Sent = 4, 30 })
	f("fewest in flight before fewest sent", 2, func(rows []abi.Row) {
		for i := range rows {
			rows[i].InFlight = 1
		}
		rows[2].InFlight, rows[2].Sent = 0, 99
	})
	f("slow start comes last", 1, func(rows []abi.Row) { rows[0].State, rows[0].Sent = abi.RowSlowStart, 0 })
}

// Equal is who is no worse in all that is known. What is learnt may differ by its noise, and no more.
func TestNearTies(t *testing.T) {
	f := func(what string, want int, change func(f *sdktest.Frame)) {
		t.Helper()
		fr := sdktest.NewFrame(3).Prompt(8000)
		for i := range fr.Rows {
			fr.Rows[i].Lately = 5
		}
		fr.Rows[1].Lately, fr.Rows[0].Slow = 4, .9
		change(fr)
		if got := fr.Run(t, &strategy{}); got.Row != want {
			t.Errorf("%s: row %d; want %d", what, got.Row, want)
		}
	}
	f("a tenth slower is noise", 1, func(f *sdktest.Frame) {})
	f("a fifth is not", 0, func(f *sdktest.Frame) { f.Rows[1].Slow = 1.1 })
	f("one more in flight", 0, func(f *sdktest.Frame) {
		for i := range f.Rows {
			f.Rows[i].InFlight = 20
		}
		f.Rows[1].InFlight = 21
	})
	f("something pending", 0, func(f *sdktest.Frame) { f.Rows[1].Pending = .01 })
	f("a block less", 1, func(f *sdktest.Frame) { f.Hold(0, 128).Hold(1, 112) })
	f("two blocks less", 0, func(f *sdktest.Frame) { f.Hold(0, 128).Hold(1, 96) })
	f("more to push out", 0, func(f *sdktest.Frame) {
		f.Rows[1].FreeGPU, f.Rows[1].ReuseGPU = 0, .01
	})
	f("all at their first request", 0, func(f *sdktest.Frame) {
		for i := range f.Rows {
			f.Rows[i].Slow, f.Rows[i].Lately = 1, 0
		}
	})
}

// A session of many turns begins where they wait for little, though a hit there is lost. A later turn stays where its
// context is, and so does a chat of few turns, or one worker with nobody beside it.
func TestWhereASessionBegins(t *testing.T) {
	last := int32(-1)
	f := func(what string, want int, turn, more, inFlight uint32) {
		t.Helper()
		fr := sdktest.NewFrame(3).Prompt(8000).Hold(0, 7700)
		fr.Header.Last = last
		fr.Header.Lambda, fr.Header.Turn, fr.Header.ExpectedTurns = .05, turn, more
		for i := range fr.Rows {
			fr.Rows[i].Lately, fr.Rows[i].Load = 30, .05
		}
		fr.Rows[0].InFlight = inFlight
		if got := fr.Run(t, &strategy{}); got.Row != want {
			t.Errorf("%s: row %d; want %d", what, got.Row, want)
		}
	}
	f("the first turn of many", 1, 1, 20, 4)
	f("the second, beside a title", 1, 2, 20, 4)
	last = 1
	f("the second, whose title went elsewhere", 1, 2, 20, 4)
	last = 0
	f("the second, behind one that has left most of it", 0, 2, 20, 4)
	f("the third", 0, 3, 20, 4)
	f("a chat", 0, 1, 4, 4)
	f("no session is named", 0, 0, 20, 4)
	f("nobody is there", 0, 1, 20, 0)
}

// At the edge of KV a hit is left for a worker that has room, and kept if nobody has.
func TestTheEdgeOfKV(t *testing.T) {
	f := func(what string, want int, change func(f *sdktest.Frame)) {
		t.Helper()
		fr := sdktest.NewFrame(3).Prompt(60_000).Hold(0, 54_000).Hold(1, 50_000)
		change(fr)
		score.Price(&fr.Header, fr.Rows)
		for _, byCost := range []bool{false, true} {
			if got := fr.Run(t, &strategy{rule: score.Rule{ByCost: byCost}}); got.Row != want {
				t.Errorf("%s: row %d; want %d", what, got.Row, want)
			}
		}
	}
	f("room", 0, func(f *sdktest.Frame) { f.Rows[0].HeldTokens = 390_000 })
	f("full", 1, func(f *sdktest.Frame) { f.Rows[0].HeldTokens = 450_000 })
	f("full, but for what is shared", 0, func(f *sdktest.Frame) {
		f.Rows[0].HeldTokens, f.Rows[0].SharedTokens = 440_000, 50_000
	})
	f("the answer does not fit", 1, func(f *sdktest.Frame) {
		f.Rows[0].HeldTokens, f.Header.ExpectedOutput = 389_000, 40_000
	})
	f("all are full", 0, func(f *sdktest.Frame) {
		for i := range f.Rows {
			f.Rows[i].HeldTokens = 450_000
		}
	})
	f("nobody knows", 0, func(f *sdktest.Frame) {
		for i := range f.Rows {
			f.Rows[i].KVTokens = 0
		}
		f.Rows[0].HeldTokens = 900_000
	})
}

func TestNoNumber(t *testing.T) {
	f := sdktest.NewFrame(3)
	f.Rows[0].Slow = math.NaN()
	f.Rows[1].Slow = math.Inf(1)
	if got := f.Run(t, &strategy{}); got.Row != 2 || len(got.Order) != 0 {
		t.Errorf("row %d, then %v; want 2 alone: the others have no score", got.Row, got.Order)
	}
	f.Rows[2].Wait = math.NaN() // and with it the mean
	if got := f.Run(t, &strategy{}); got.Row != int(abi.Decline) {
		t.Errorf("row %d; want a decline", got.Row)
	}
}

func TestOrderAndReasons(t *testing.T) {
	f := func(what string, want sdk.Reason, change func(f *sdktest.Frame)) {
		t.Helper()
		fr := sdktest.NewFrame(8).Prompt(8000)
		change(fr)
		got := fr.Run(t, &strategy{})
		if got.Reason != want {
			t.Errorf("%s: reason %q; want %q", what, got.Reason, want)
		}
		if len(got.Order) != sdk.Alternatives {
			t.Errorf("%s: alternatives %v; want %d", what, got.Order, sdk.Alternatives)
		}
	}
	f("nothing cached", sdk.ReasonCold, func(f *sdktest.Frame) {})
	f("cached", sdk.ReasonPrefix, func(f *sdktest.Frame) { f.Hold(3, 4000) })
	f("cached, overloaded", sdk.ReasonLoad, func(f *sdktest.Frame) { f.Hold(3, 4000).Rows[3].Wait = 9 })
}

func TestNoAllocation(t *testing.T) {
	f := sdktest.NewFrame(256)
	f.Randomize(rand.New(rand.NewPCG(5, 6)), 256)
	r, s := sdk.NewRequest(&f.Header, make([]uint32, 256)), &strategy{}
	if n := testing.AllocsPerRun(100, func() { r.OrderLen = 0; s.Route(r, f.Rows) }); n != 0 {
		t.Errorf("%v allocations a request; want 0", n)
	}
}
