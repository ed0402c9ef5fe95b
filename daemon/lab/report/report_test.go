package report

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/daemon/lab/trial"
)

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*max(1, math.Abs(b)) }

func TestMean(t *testing.T) {
	f := func(want Estimate, v ...float64) {
		t.Helper()
		if got := Mean(v); !near(got.Value, want.Value) || !near(got.Error, want.Error) {
			t.Errorf("Mean(%v) = %v; want %v", v, got, want)
		}
	}
	f(Estimate{})
	f(Estimate{Value: 3}, 3)
	f(Estimate{Value: 2, Error: 2}, 1, 3) // sd sqrt 2, standard error 1
	f(Estimate{Value: 5}, 5, 5, 5)
}

func TestRatio(t *testing.T) {
	f := func(want Estimate, a, b []float64) {
		t.Helper()
		if got := Ratio(a, b); !near(got.Value, want.Value) || !near(got.Error, want.Error) {
			t.Errorf("Ratio(%v, %v) = %v; want %v", a, b, got, want)
		}
	}
	f(Estimate{Value: 1.5}, []float64{3}, []float64{2})
	f(Estimate{Value: 2}, []float64{2, 4, 40}, []float64{1, 2, 20}) // as every pair has the same ratio
	// Left out one by one: 4/2, 2/2; their mean 1.5, squares .25 each, times 1/2.
	f(Estimate{Value: 1.5, Error: 1}, []float64{2, 4}, []float64{2, 2})
	for _, v := range [][2][]float64{{{1}, {}}, {{1, 2}, {1}}, {{1}, {0}}} {
		if got := Ratio(v[0], v[1]); !math.IsNaN(got.Value) {
			t.Errorf("Ratio(%v, %v) = %v; want no number", v[0], v[1], got)
		}
	}
}

// The interval holds the true ratio about as often as it should, and shared luck narrows it.
func TestRatioCovers(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	const rounds, seeds, truth = 2000, 10, 1.1
	held, paired, apart := 0, 0., 0.
	for range rounds {
		a, b, other := make([]float64, seeds), make([]float64, seeds), make([]float64, seeds)
		for i := range a {
			luck := math.Exp(.3 * rng.NormFloat64())
			a[i], b[i] = truth*luck*(1+.05*rng.NormFloat64()), luck*(1+.05*rng.NormFloat64())
			other[i] = math.Exp(.3 * rng.NormFloat64())
		}
		r := Ratio(a, b)
		if math.Abs(r.Value-truth) <= r.Error {
			held++
		}
		paired += r.Error
		apart += Ratio(a, other).Error
	}
	if share := float64(held) / rounds; share < .88 || share > .98 {
		t.Errorf("the interval held the true ratio in %.3f of the rounds", share)
	}
	if paired > apart/3 {
		t.Errorf("pairs give an interval of %.3f, strangers %.3f", paired/rounds, apart/rounds)
	}
}

// sample has two scenarios, two peers and two others; warm is 10 % slower than the better peer in "heavy".
func sample() Report {
	r := Report{Title: "Sample <b>", Conditions: []string{"7 workers"}, Price: 2}
	add := func(scenario, strategy string, peer bool, seed uint64, ttft float64) {
		r.Runs = append(r.Runs, Run{Scenario: scenario, Strategy: strategy, Peer: peer, Seed: seed, Figures: Figures{
			Requests: 10, PromptTokens: 1000, CachedTokens: 800, OutputTokens: 2000, Seconds: 100, GPUSeconds: 700,
			TTFTMean: ttft, TTFTP50: ttft / 2, TTFTP90: 2 * ttft, TTFTP99: 3 * ttft, TPOTMean: .02, Imbalance: 1.1}})
	}
	for seed := uint64(1); seed <= 3; seed++ {
		by := 1 + .1*float64(seed)
		add("light", "round robin", true, seed, 4*by)
		add("light", "session", true, seed, 2*by)
		add("light", "warm", false, seed, 2.04*by)
		add("light", "cold", false, seed, 1*by)
		add("heavy", "round robin", true, seed, 20*by)
		add("heavy", "session", true, seed, 30*by)
		add("heavy", "warm", false, seed, 22*by)
		add("heavy", "cold", false, seed, 10*by)
	}
	add("heavy", "warm", false, 4, 1e6) // a seed that the others lack is not compared
	return r
}

func TestCells(t *testing.T) {
	r := sample()
	cells := r.Cells()
	if len(cells) != 4 {
		t.Fatalf("%d cells; want mean and P90 of two scenarios", len(cells))
	}
	f := func(i int, scenario, peer string, warm float64, within bool) {
		t.Helper()
		c := cells[i]
		if got := c.Ratios["warm"]; c.Scenario != scenario || c.BestPeer != peer || c.Seeds != 3 ||
			!near(got.Value, warm) || got.Within != within || !got.Sure {
			t.Errorf("cell %d is %+v", i, c)
		}
	}
	f(0, "light", "session", 1.02, true)
	f(1, "light", "session", 1.02, true)
	f(2, "heavy", "round robin", 1.1, false)
	f(3, "heavy", "round robin", 1.1, false)
	tallies := Tallies(cells)
	if len(tallies) != 2 || tallies[1].Strategy != "warm" || tallies[1].Within != 2 || tallies[1].Cells != 4 ||
		!near(tallies[1].Worst, 1.1) || !near(tallies[1].Geometric, math.Sqrt(1.02*1.1)) || tallies[0].Within != 4 {
		t.Errorf("tallies %+v", tallies)
	}
}

func TestText(t *testing.T) {
	r := sample()
	var b bytes.Buffer
	if err := r.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Sample <b>", "80.0 %", "1.100±0.000 *", "warm: within 5 % of the best peer in 2 of 4"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, &b)
		}
	}
}

func TestJSONIsReadBack(t *testing.T) {
	r := sample()
	var b, again bytes.Buffer
	if err := r.WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	if !json.Valid(b.Bytes()) {
		t.Fatal("not JSON")
	}
	read, err := ReadJSON(bytes.NewReader(b.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	if err := read.WriteJSON(&again); err != nil || again.String() != b.String() {
		t.Errorf("read back and written, it is another: %v", err)
	}
}

// The page loads nothing, is well formed, and writes nothing unescaped.
func TestHTML(t *testing.T) {
	r := sample()
	var b bytes.Buffer
	if err := r.WriteHTML(&b); err != nil {
		t.Fatal(err)
	}
	page := b.String()
	for _, bad := range []string{"http://", "https://", "<script", "src=", "@import", "url(", "Sample <b>", "NaN"} {
		if strings.Contains(page, bad) {
			t.Errorf("the page has %q", bad)
		}
	}
	for i, part := range strings.Split(page, "<svg")[1:] {
		picture, _, _ := strings.Cut(part, "</svg>")
		d := xml.NewDecoder(strings.NewReader("<svg" + picture + "</svg>"))
		for {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("picture %d: %v", i, err)
			}
		}
	}
	if n := strings.Count(page, "<svg"); n != 4 {
		t.Errorf("%d pictures; want one a scenario and one a strategy that is compared", n)
	}
}

// Without peers, without runs, and with a strategy that served nothing there is still a report.
func TestLittleToSay(t *testing.T) {
	alone := sample()
	alone.Runs = alone.Runs[2:3]
	nothing := sample()
	for i := range nothing.Runs {
		nothing.Runs[i].Figures = Figures{}
	}
	for _, r := range []Report{{Title: "empty"}, alone, nothing} {
		for _, write := range []func(io.Writer) error{r.WriteText, r.WriteJSON, r.WriteHTML} {
			if err := write(io.Discard); err != nil {
				t.Errorf("%d runs: %v", len(r.Runs), err)
			}
		}
	}
}

func TestFromTrial(t *testing.T) {
	run := trial.Run{Scenario: "s", Strategy: "x", Seed: 3, Ended: 10e9, GPUSeconds: 20, Moved: 1,
		Workers: []trial.Worker{{PrefillSeconds: 3, Preemptions: 2}, {PrefillSeconds: 1}},
		Outcomes: []trial.Outcome{
			{First: 1e9, Ended: 3e9, Prompt: 100, Cached: 60, Output: 5},
			{Prompt: 1000, Cached: 1000, Status: trial.Refused, Worker: -1},
		}}
	want := Figures{Requests: 2, Lost: 1, Moved: 1, PromptTokens: 100, CachedTokens: 60, OutputTokens: 5, Preemptions: 2,
		Seconds: 10, GPUSeconds: 20, TTFTMean: 1, TTFTP50: 1, TTFTP90: 1, TTFTP99: 1, TPOTMean: .5, TPOTP90: .5, Imbalance: 1.5}
	if got := FromTrial(&run, true); got.Figures != want || !got.Peer || got.Seed != 3 {
		t.Errorf("got %+v; want %+v", got, want)
	}
	if got := FromTrial(&trial.Run{}, false); got.Figures.TTFTMean != 0 {
		t.Errorf("a run of nothing has %+v", got.Figures)
	}
}

func TestTicks(t *testing.T) {
	f := func(low, high float64, want ...string) {
		t.Helper()
		var got []string
		for _, k := range (axis{low, high}).ticks() {
			got = append(got, k.Text)
		}
		if strings.Join(got, " ") != strings.Join(want, " ") {
			t.Errorf("from %v to %v: %v; want %v", low, high, got, want)
		}
	}
	f(.09, 3, "0.1", "0.2", "0.5", "1", "2")
	f(.09, 200, "0.1", "1", "10", "100")
	f(.7, 1.3, "0.7", "0.8", "0.9", "1", "1.2")
	if a := (axis{.1, 10}); a.at(0) != labelWidth || a.at(1) != labelWidth+plotWidth/2 || a.at(1e9) != labelWidth+plotWidth {
		t.Errorf("0 at %v, 1 at %v, 1e9 at %v", a.at(0), a.at(1), a.at(1e9))
	}
}
