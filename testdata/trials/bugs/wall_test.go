package bugs

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
)

// wallCase is one case. play returns what was measured, and whether that is right.
type wallCase struct {
	name string
	play func(*lab) (figure string, ok bool)
}

// wall is all cases.
var wall = slices.Concat(misfortunes, deaths, refusals, fullness, silences, connects, begunStreams, firstPieces, numbers,
	states, answers, jobs, lengths, bodies, adapters, places, topics, ends, doors, strangers, elsewheres)

func TestWall(t *testing.T) {
	got := measured{}
	t.Cleanup(func() { got.write(t) })
	for _, c := range wall {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			figure, ok := c.play(&lab{t: t, dir: t.TempDir()})
			got.note(c.name, figure)
			if !ok {
				t.Error(figure)
			} else {
				t.Log(figure)
			}
		})
	}
}

// measured is what the cases of a run came to, by name.
type measured struct {
	mu      sync.Mutex
	figures map[string]string
}

func (m *measured) note(name, figure string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.figures == nil {
		m.figures = map[string]string{}
	}
	m.figures[name] = strings.NewReplacer("|", "/", "\n", " ", "\r", "").Replace(figure)
}

const table = "findings.md"

// write puts the figures into the column that -record names.
func (m *measured) write(t *testing.T) {
	column := map[string]int{"before": 4, "after": 5}[*record]
	if column == 0 {
		return
	}
	text, err := os.ReadFile(table)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(text), "\n")
	for i, line := range lines {
		cells := strings.Split(line, "|")
		if len(cells) != 7 {
			continue
		}
		if figure, ok := m.figures[strings.TrimSpace(cells[3])]; ok {
			cells[column] = " " + figure + " "
			lines[i] = strings.Join(cells, "|")
		}
	}
	if err := os.WriteFile(table, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		t.Error(err)
	}
}

// kinds are the kinds of faults. A new report is of one of these, or its kind is added here.
var kinds = []string{
	"a verdict from one request",
	"repeats without suspicion",
	"silence taken for death",
	"a quick refusal taken for speed",
	"backpressure taken for sickness",
	"a number believed against what was seen before",
	"an answer given to another request",
	"a default below what clients send",
	"unknown taken for nothing",
	"stickiness for one API only",
	"what a worker says of itself is not used",
	"a stale list trusted for a refusal",
	"a client's leaving taken for failure",
	"duplicates resolved by order",
	"identities compared as text",
	"a refusal that ends a client's session",
	"places without a deadline",
}

// TestFindings holds the table against the cases: each has one row with a kind and both figures, and no row is without a case.
func TestFindings(t *testing.T) {
	text, err := os.ReadFile(table)
	if err != nil {
		t.Fatal(err)
	}
	for _, trouble := range compare(string(text), wall) {
		t.Error(trouble)
	}
}

// compare returns what is wrong with the table beside the cases.
func compare(text string, cases []wallCase) (troubles []string) {
	rows := map[string]int{}
	for line := range strings.Lines(text) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) != 7 || strings.HasPrefix(cells[1], " ---") || strings.TrimSpace(cells[3]) == "test" {
			continue
		}
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		rows[cells[3]]++
		if cells[1] == "" || cells[4] == "" || cells[5] == "" {
			troubles = append(troubles, fmt.Sprintf("%s of %s: a cell is empty", cells[3], table))
		}
		if !slices.Contains(kinds, cells[2]) {
			troubles = append(troubles, fmt.Sprintf("%s of %s: %q is no kind", cells[3], table, cells[2]))
		}
	}
	for _, c := range cases {
		if n := rows[c.name]; n != 1 {
			troubles = append(troubles, fmt.Sprintf("%s has %d rows in %s; want 1", c.name, n, table))
		}
		delete(rows, c.name)
	}
	for name := range rows {
		troubles = append(troubles, fmt.Sprintf("%s of %s is no case", name, table))
	}
	return troubles
}

// TestCompare: a case without a row, a row without a case, an empty cell and an unknown kind are found.
func TestCompare(t *testing.T) {
	f := func(text string, want int) {
		t.Helper()
		if got := compare(text, []wallCase{{"a", nil}}); len(got) != want {
			t.Errorf("%q: %q; want %d troubles", text, got, want)
		}
	}
	f("| report | kind | test | before | after |\n| --- | --- | --- | --- | --- |\n| x#1 | silence taken for death | a | 1 | 0 |\n", 0)
	f("", 1)
	f("| x#1 | silence taken for death | b | 1 | 0 |", 2)
	f("| x#1 | silence taken for death | a |  | 0 |", 1)
	f("| x#1 | bad luck | a | 1 | 0 |", 1)
}
