package exchange_test

import (
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var runMutants = flag.String("mutants", "", "leave each rule of the judge out in turn that fits this pattern, and see that an invariant finds it")

// mutant is the judge without one of its rules: a file in which one text stands in another's place.
type mutant struct {
	rule, file, text, instead string
	caught                    string // by which invariant
}

var mutants = []mutant{
	{"one failed answer sets nobody aside", "worker/evidence.go", `words: "failed answer", cause: failing, requests: 5`,
		`words: "failed answer", cause: failing, requests: 1`, "evidence"},
	{"one broken connection sets nobody aside", "worker/evidence.go", `words: "connection broke", cause: failing, requests: 5`,
		`words: "connection broke", cause: failing, requests: 1`, "evidence"},
	{"one abort sets nobody aside", "worker/evidence.go", `cause: leaving, requests: 3`, `cause: leaving, requests: 1`, "evidence"},
	{"one refusal sets nobody aside", "worker/evidence.go", `cause: refusing, requests: 3`, `cause: refusing, requests: 1`, "evidence"},
	{"failures set a worker aside", "worker/evidence.go", `words: "failed answer", cause: failing`, `words: "failed answer"`, "share"},
	{"broken connections set a worker aside", "worker/evidence.go", `words: "connection broke", cause: failing`,
		`words: "connection broke"`, "share"},
	{"aborts set a worker aside", "worker/evidence.go", `words: "gives up what it accepts", cause: leaving`,
		`words: "gives up what it accepts"`, "share"},
	{"refusals set a worker aside", "worker/verdict.go", `if e.breaker.count(p, 1, now, tried) {`, `if e.breaker.count(p, 1, now, tried) && false {`, "share"},
	{"a refusal is compared with another worker's answer", "worker/ticket.go",
		`return e.breaker.cause == refusing || e.records[t.request.class].doubtful()`, `return e == nil`, "share"},
	{"the accepting worker confirms a refusal", "worker/ticket.go", `t.pool.fleet.confirm(`,
		`_ = t.pool.fleet.confirm; func(*Worker, *request, Kind, string, float64) {}(`, "share"},
	{"a failure that another worker repeats is taken back", "exchange/attempts.go", `s.trip.Excuse(k, time.Now())`, ``, "evidence"},
	{"and does not count against that one", "worker/verdict.go", `if o.Excused {`, `if false {`, "evidence"},
	{"the breaker that it opened closes", "worker/verdict.go", `		b.takeBack(now)
`, ``, "evidence|share"},
	{"half of the workers stay", "worker/verdict.go", `return 2*out <= there`, `return true`, "half"},
	{"silence is no death", "worker/health.go", `		return silent
`, `		return down
`, "silence"},
	{"one late check is none", "worker/health.go", `maxLate = 2 `, `maxLate = 1 `, "one late|one 503"},
	{"a worker whose answers flow is not silent", "worker/health.go", `h.late >= maxLate && !flows`, `h.late >= maxLate`, "silence"},
	{"suspects get what nobody else takes", "worker/snapshot.go", `s.takeBy(trusting)`, ``, "refused"},
	{"full workers get what nobody else takes", "worker/snapshot.go", `s.takeBy(crowded)`, ``, "refused"},
	{"one 503 on /health is no death", "worker/health.go", `maxIll  = 2 `, `maxIll  = 1 `, "one 503"},
	{"a process of before is a balancer", "worker/process.go", `return oldProcess`, `return newProcess`, "balancer"},
	{"a balancer has no restarts", "worker/process.go", `case p.many || p.began == 0:`, `case p.began == 0:`, "balancer"},
	{"a full worker is left alone for a moment", "worker/room.go", `return has < r.full+`, `return true || has < r.full+`, "goodput"},
	{"a full worker is not sick", "worker/evidence.go", `Busy:     {words: "says that it is busy", crowds: true}`,
		`Busy:     {words: "says that it is busy", cause: failing, requests: 5}`, "goodput"},
	{"a request ends two engines at most", "exchange/lethal.go", `		if now.Sub(x.at) < lethalFor &&`, `		if false &&`, "two engines"},
	{"in its attempts too", "exchange/attempts.go", `const maxBroken = 2`, `const maxBroken = 9`, "two engines"},
	{"and repeats count with them", "exchange/exchange.go", `	r.attempts.broken = int32(e.deaths)
`, ``, "two engines"},
	{"a good check does not speak for all behind a balancer", "worker/ticket.go", `!w.process.many && `, ``, "two engines"},
	{"only what another takes is given up", "worker/pool.go", `r.first == 0 && f.takesElsewhere(r, w.endpoint, at)`, `r.first == 0`, "given up"},
	{"who had it does not take it", "worker/judge.go", `r.tried&(1<<(w.slot%64)) == 0 &&`, ``, "given up"},
	{"who waits for a trial does not take all", "worker/judge.go", `w.breaker.cause == none &&`, ``, "refused"},
	{"what has begun is never given up", "worker/pool.go", `r.first == 0 && f.takesElsewhere`, `f.takesElsewhere`, "none"},
	{"nor by its attempt", "exchange/attempt.go", `waits == forMore || `, ``, "none"},
	{"a request is moved once", "exchange/exchange.go", `	case reasonMoved:
		e.moved = true
`, ``, "blocking"},
	{"requests at a silent worker wait three times as long", "worker/judge.go", `silentGraces = 3`, `silentGraces = 1`, "blocking"},
	{"a second look is taken before a worker is asked again", "route/choice.go", `if c.order.left() > 0 || !c.MayWiden(at) {`,
		`if true {`, "refused"},
	{"there is a look after a long attempt", "route/choice.go", `(!c.order.looked || at.Sub(c.at) >= lookEvery)`, `!c.order.looked`, "refused"},
	{"a trial that is excused changes nothing", "worker/breaker.go", `*b = breaker{opening: b.before, until: now}`, `b.shut()`, "share"},
	{"the same worker excuses nobody", "exchange/attempts.go", ` && s.trip.Worker().Endpoint() != by.Endpoint()`, ``, "none"},
}

// TestMutants leaves each rule of the judge out in turn. make mutants calls it.
func TestMutants(t *testing.T) {
	if *runMutants == "" {
		t.Skip("make mutants runs it, for some minutes")
	}
	wanted := regexp.MustCompile(*runMutants)
	breach := regexp.MustCompile(`judge_test.go:\d+: ([a-z0-9 ]+): at|(requests are served)`)
	for _, m := range mutants {
		if !wanted.MatchString(m.rule) {
			continue
		}
		out, ok := m.run(t)
		found := "none"
		if is := breach.FindStringSubmatch(out); is != nil {
			found = is[1]
			if is[2] != "" {
				found = "goodput"
			}
		}
		t.Logf("%-12s %s", found, m.rule)
		if !slices.Contains(strings.Split(m.caught, "|"), found) || !ok && found == "none" {
			t.Errorf("%q, left out: caught by %q; want %q\n%.2000s", m.rule, found, m.caught, out)
		}
	}
}

// run runs the model check of the mutant, in a copy of one file that lies over the tree.
func (m *mutant) run(t *testing.T) (out string, ok bool) {
	dir, path := t.TempDir(), filepath.Join("..", filepath.FromSlash(m.file))
	source, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(source), m.text); n != 1 {
		t.Fatalf("%s has %q %d times; want once", m.file, m.text, n)
	}
	path, err = filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	changed, overlay := filepath.Join(dir, "changed.go"), filepath.Join(dir, "overlay.json")
	list, err := json.Marshal(map[string]map[string]string{"Replace": {path: changed}})
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{changed: strings.Replace(string(source), m.text, m.instead, 1), overlay: string(list)} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b, err := exec.Command("go", "test", "-vet=off", "-overlay", overlay, "-run", "TestJudge$|TestGoodput", "-short", "-fleets", "80000", ".").CombinedOutput()
	return string(b), err == nil
}
