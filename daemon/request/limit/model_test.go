package limit

import (
	"cmp"
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// tenant is how the clients of a key behave in the model check.
type tenant struct {
	about   string
	most    int     // max_tokens that they send; 0 = none
	short   int     // answers of one token before the others
	mean    float64 // tokens of an answer
	spread  float64 // 0 = all are alike; 1 = a tenth is nine times the others
	at      int     // requests at a time
	leaving float64 // share of the answers that their clients leave half-way
	silent  bool    // the engine reports no usage
	stream  bool
	least   float64 // of its limit that the key gets
	pace    float64 // tokens a second; 0 = 50
	windows float64 // of the limit in 60 s, besides one request
}

// play has a tenant ask for some minutes of virtual time, and returns the tokens that were computed, when their request
// was let in, and the largest request.
func (x *tenant) play(t *testing.T, minute int, length time.Duration, draw *rand.Rand) (all []event, largest int) {
	k := newKey(Limits{InFlight: x.at, Tokens: minute})
	type running struct {
		s       *Spending
		at, end time.Duration
		prompt  int
		output  int
		left    bool
	}
	var under []*running
	asked, retry := 0, time.Duration(0)
	for at := time.Duration(0); at < length; at += 100 * time.Millisecond {
		now := began.Add(at)
		kept := under[:0]
		for _, r := range under {
			made := int(float64(r.output) * float64(at-r.at) / float64(r.end-r.at))
			switch {
			case r.left && at >= (r.at+r.end)/2:
				if x.stream {
					r.s.Use(Tokens{Prompt: r.prompt, Output: made})
				} else {
					r.s.Left(now)
				}
				r.output = made
			case at >= r.end:
				used := Tokens{Prompt: r.prompt, Output: r.output}
				r.s.Use(used)
				if x.silent { // the router counts the bytes of the answer
					used.Prompt = 0
				}
				r.s.Learn(used, now)
			default:
				if x.stream {
					r.s.Grow(made, now)
				}
				kept = append(kept, r)
				continue
			}
			r.s.End(now)
			r.s.End(now)
			all = append(all, event{at: r.at, tokens: r.prompt + r.output})
			largest = max(largest, r.prompt+r.output)
		}
		under = kept
		checkSums(t, k)
		for at >= retry {
			s, refused := k.Enter(now)
			prompt, output := 20+draw.IntN(60), x.mean*(.8+.4*draw.Float64())
			if x.spread > 0 && draw.IntN(10) > 0 {
				output /= 9
			}
			if asked < x.short {
				output = 1
			}
			if x.most > 0 {
				output = min(output, float64(x.most))
			}
			if refused == nil {
				refused = s.Reserve(Ask{Prompt: prompt, Bytes: 4 * prompt, Answers: 1, Most: x.most, Whole: !x.stream}, now)
			}
			if refused != nil {
				if refused.By == ByTokens && (refused.After <= 0 || refused.After > (mostDebt+2)*time.Minute) {
					t.Fatalf("%s: come back in %v", x.about, refused.After)
				}
				retry = at + refused.After + time.Millisecond
				break
			}
			asked++
			s.Sent()
			under = append(under, &running{s: s, at: at, prompt: prompt, output: max(1, int(output)),
				end: at + 300*time.Millisecond + time.Duration(output/cmp.Or(x.pace, 50)*float64(time.Second)), left: draw.Float64() < x.leaving})
		}
	}
	now := began.Add(length)
	for _, r := range under {
		r.s.Use(Tokens{Prompt: r.prompt, Output: r.output})
		r.s.End(now)
	}
	x.rests(t, k, now)
	return all, largest
}

// rests fails unless the key is let in when it was told, and holds nothing after ten minutes of rest.
func (x *tenant) rests(t *testing.T, k *Key, now time.Time) {
	t.Helper()
	wait := k.tokens.wait(now)
	if s, refused := k.Enter(now.Add(wait)); refused != nil {
		t.Errorf("%s: refused after the wait of %v that it was told: %+v", x.about, wait, refused)
	} else {
		s.End(now.Add(wait))
	}
	rest := now.Add(wait + 10*time.Minute)
	k.tokens.pass(rest)
	if sum, debt := k.tokens.minute.sum, k.tokens.minute.debt(); k.inFlight != 0 || math.Abs(sum) > 1e-6 || debt > 1e-6 || k.tokens.risk > 1 {
		t.Errorf("%s: at rest %d are in flight, %v taken, %v owed, a risk of %v", x.about, k.inFlight, sum, debt, k.tokens.risk)
	}
}

// TestRandomTenants plays tenants of all kinds for ten minutes. A key whose answers are like those before gets 1.05 of its
// limit and one request at most in any 60 s; with a few long answers among short ones 1.3. A key that turns from short to
// long answers gets 2.5 times its limit at most, once, and then pays: in ten minutes no key gets more than its limit.
// Honest keys get .8 of it, with the time in which nothing was known of them, and .6 of an engine with 12 tokens a second,
// as more answers are under way at a time.
func TestRandomTenants(t *testing.T) {
	for round := range 25 {
		draw := rand.New(rand.NewPCG(uint64(round), 11))
		minute := 5000 << draw.IntN(6)
		for _, x := range []tenant{
			{about: "honest", mean: 100, at: 50, stream: true, least: .8, windows: 1.05},
			{about: "honest, answers in one piece", mean: 150, at: 50, least: .8, windows: 1.05},
			{about: "honest, of a slow engine", mean: 150, at: 300, pace: 12, least: .6, windows: 1.05},
			{about: "honest, of a fast engine", mean: 150, at: 50, pace: 200, least: .8, windows: 1.05},
			{about: "asks for more than it gets", mean: 200, most: 8000, at: 50, stream: true, least: .8, windows: 1.05},
			{about: "a tenth is long", mean: 900, spread: 1, at: 50, stream: true, windows: 1.3},
			{about: "long ones, all at once", mean: 1500, at: 300, windows: 1.8},
			{about: "long ones, and says so", mean: 1500, most: 1500, short: 40, at: 300, windows: 2.5},
			{about: "without usage", mean: 400, at: 50, stream: true, silent: true, windows: 1.05},
			{about: "leaves streams", mean: 400, leaving: .7, at: 50, stream: true, windows: 1.05},
			{about: "leaves answers in one piece", mean: 400, leaving: .7, at: 50, windows: 1.05},
			{about: "turns to long ones", mean: 2000, short: 40, at: 300, windows: 2.5},
			{about: "turns to long streams", mean: 2000, short: 200, at: 300, stream: true, windows: 2.5},
		} {
			all, largest := x.play(t, minute, 10*time.Minute, draw)
			most, sum := busiest(all)
			if float64(most) > x.windows*float64(minute)+float64(largest) {
				t.Errorf("%s, %d a minute: %d in 60 s, the largest request had %d", x.about, minute, most, largest)
			}
			if over := float64(sum) - 10.5*float64(minute) - float64(largest); over > (x.windows-1.05)*float64(minute) {
				t.Errorf("%s, %d a minute: %d in ten minutes", x.about, minute, sum)
			}
			if float64(sum) < 10*x.least*float64(minute) {
				t.Errorf("%s, %d a minute: only %d in ten minutes", x.about, minute, sum)
			}
		}
	}
}
