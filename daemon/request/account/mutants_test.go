package account_test

import (
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var runMutants = flag.String("mutants", "", "leave each rule out in turn that fits this pattern, and see that a check finds it")

// mutants are the accounts, the limits and the queue, each without one rule: a text of a file with another in its place.
// TestTenants finds them, or the named test of the file's package.
var mutants = []struct{ rule, file, text, instead, test string }{
	{"a hold is released once", "account/account.go", "if a := h.of.Swap(nil); a != nil {", "if a := h.of.Load(); a != nil {", ""},
	{"a work ends once", "account/account.go", "if a := w.of.Swap(nil); a != nil {", "if a := w.of.Load(); a != nil {", ""},
	{"a client's request ends once", "account/account.go", "if a != nil && !a.left.Swap(true) {", "if a != nil {", ""},
	{"the key's place is taken until the last work ends", "account/account.go", "last := a.works == 0", "last := a.works <= 1", ""},
	{"a body is kept while a work reads it", "account/account.go", "if a.readers == 0 {", "if a.readers >= 0 {", ""},
	{"a request in flight is counted down", "limit/spending.go", "	k.inFlight--\n", "", ""},
	{"an answer that outgrows its estimate takes more", "limit/spending.go", "more := max(output, s.ask.bounded(2*float64(output))) - s.expected.Output",
		"more := 0", "TestAnswersThatOutgrowTheirExpectation"},
	{"without usage the bytes of an answer show that max_tokens is ignored", "limit/habits.go", "		allowed *= far\n", "		return\n",
		"TestWithoutUsageTheBytesOfAnswersShowWhatIsIgnored"},
	{"what is above the estimate counts", "limit/spending.go", "t.correct(min(used, mostDebt*t.limit)-s.reserved, s.at, at)",
		"t.correct(min(used, s.reserved)-s.reserved, s.at, at)", ""},
	{"what is used counts in the minute in which it was let in", "limit/minute.go", "	m.sum += units\n", "	m.sum += min(units, 50)\n", ""},
	{"no minute has more than the limit", "limit/meter.go", "max(m.minute.until(taken), m.paid(most))",
		"max(m.minute.until(10*taken), m.paid(most))", ""},
	{"a debt shuts a key out", "limit/meter.go", "max(m.minute.until(taken), m.paid(most))", "max(m.minute.until(taken), m.paid(10*most+1e9))", ""},
	{"a key has one account over all its lanes", "queue/class.go", "return accountName{class: n.class, key: n.key}",
		"return accountName{class: n.class, key: n.key + string(rune(n.lane))}", ""},
	{"a place is charged when its work is done", "queue/account.go", "	a.spent += more\n", "	a.spent += 0 * more\n", ""},
	{"who waits for starve has a turn before others", "queue/queue.go", "if starve <= 0 || q.inOrder < ordered {", "if true {", ""},
	{"lanes of one key take no turns that wait for starve", "queue/queue.go",
		"case c.number == q.ready[0].number && k.account.served.After(k.since):", "case false:", ""},
}

// TestMutants leaves each rule out in turn.
func TestMutants(t *testing.T) {
	for _, m := range mutants {
		name, err := filepath.Abs(filepath.Join("..", filepath.FromSlash(m.file)))
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(text), m.text); n != 1 {
			t.Errorf("%q: %s has %q %d times; want once", m.rule, m.file, m.text, n)
		}
		if *runMutants == "" || !regexp.MustCompile(*runMutants).MatchString(m.rule) {
			continue
		}
		dir := t.TempDir()
		mutated, list := filepath.Join(dir, "mutant.go"), filepath.Join(dir, "overlay.json")
		overlay, err := json.Marshal(map[string]map[string]string{"Replace": {name: mutated}})
		if err != nil {
			t.Fatal(err)
		}
		for file, what := range map[string]string{mutated: strings.Replace(string(text), m.text, m.instead, 1), list: string(overlay)} {
			if err := os.WriteFile(file, []byte(what), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		args := []string{"test", "-vet=off", "-overlay", list, "-run", "^TestTenants$", ".", "-tenants", "2000"}
		if m.test != "" {
			args = []string{"test", "-vet=off", "-overlay", list, "-run", "^" + m.test + "$", "../" + path.Dir(m.file)}
		}
		out, err := exec.Command("go", args...).CombinedOutput()
		_, found, failed := strings.Cut(string(out), "_test.go:")
		if err == nil || !failed {
			t.Errorf("%q: nothing finds that it is left out: %v\n%.500s", m.rule, err, out)
		}
		t.Logf("%-60s %.120s", m.rule, found)
	}
}
