package main

import (
	"slices"
	"strings"
	"testing"
)

// TestJudge: the exit status rests on it.
func TestJudge(t *testing.T) {
	read := map[string]string{"status": "WARNING w1 down", "log": "", "alert": "WarmpathDown WarmpathErrors"}
	f := func(says string, want ...string) {
		t.Helper()
		if got := judge(says, read); !slices.Equal(got, want) {
			t.Errorf("%q: %q; want %q", says, got, want)
		}
	}
	const both = "\nalert WarmpathDown\nalert? WarmpathErrors\nalert? WarmpathRetries"
	f("status  w1 d[a-z]+wn\nstatus! w2\nlog! ERROR" + both)
	f("status w2"+both, `status w2: found ""`)
	f("status! w1"+both, `status! w1: found "w1"`)
	f("page w1"+both, "no such surface: page w1\n")
	f("alert WarmpathRetries", "no alert WarmpathRetries", "alert WarmpathDown", "alert WarmpathErrors")
}

// TestTable: each incident has a name of its own, and says something of what an operator looks at first.
func TestTable(t *testing.T) {
	var names []string
	for _, i := range table {
		names = append(names, i.name)
		if !strings.Contains(i.says, "\nstatus ") || !strings.Contains(i.says, "! ") || i.play == nil {
			t.Errorf("%s: no status, or nothing that must not be there", i.name)
		}
	}
	if slices.Sort(names); len(slices.Compact(names)) != len(table) {
		t.Error("two incidents have one name")
	}
}
