package conf

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Problem is one thing wrong in the file.
type Problem struct {
	File   string `json:"file"`
	Line   int    `json:"line,omitempty"` // from 1; 0 = the file as a whole
	Key    string `json:"key,omitempty"`  // pools[0].workers[1].url
	What   string `json:"what"`
	Remedy string `json:"remedy"` // "" = What includes it
}

// Error is one line: conf: FILE:LINE: KEY: WHAT; REMEDY.
func (p Problem) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "conf: %s:", p.File)
	if p.Line > 0 {
		fmt.Fprintf(&b, "%d:", p.Line)
	}
	if p.Key != "" {
		fmt.Fprintf(&b, " %s:", p.Key)
	}
	b.WriteString(" " + p.What)
	if p.Remedy != "" {
		b.WriteString("; " + p.Remedy)
	}
	return b.String()
}

// Problems is the error of Load and Parse: everything wrong, in the order of the file's lines.
type Problems []Problem

// Error lists the problems, one a line.
func (ps Problems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.Error()
	}
	return strings.Join(lines, "\n")
}

// report collects the problems of a file. Its methods are the checks that every section uses.
type report struct {
	file  string
	lines map[string]int
	list  Problems
	more  int // problems beyond maxProblems
}

// maxProblems bounds the list for one file: the rest is a wrong file, or follows from these.
const maxProblems = 100

// add notes a problem of the key at path. A key that does not stand in the file has the line of the table around it.
func (r *report) add(path, what, remedy string) {
	if len(r.list) == maxProblems {
		r.more++
		return
	}
	line := 0
	for p := path; p != "" && line == 0; p = parent(p) {
		line = r.lines[p]
	}
	r.list = append(r.list, Problem{File: r.file, Line: line, Key: path, What: what, Remedy: remedy})
}

// err returns the problems sorted by line, those of the file itself before those of files that it names, or nil.
func (r *report) err() error {
	if len(r.list) == 0 {
		return nil
	}
	foreign := func(p Problem) int {
		if p.File == r.file {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(r.list, func(a, b Problem) int {
		return cmp.Or(foreign(a)-foreign(b), cmp.Compare(a.File, b.File), a.Line-b.Line)
	})
	if r.more > 0 {
		what := fmt.Sprintf("there are %d more problems", r.more)
		return append(r.list, Problem{File: r.file, What: what, Remedy: "correct these first"})
	}
	return r.list
}

// StrategyProblem returns a problem with the strategy of one of c's pools that was found after the file was read. It
// has the line of the table that names the module, or else of the pool, or of the option that the strategy does not
// know. what includes the remedy.
func (c *Config) StrategyProblem(p *Pool, what string) Problem {
	if problem, ok := c.optionProblem(p, what); ok {
		return problem
	}
	key := child("strategies", p.Strategy.Orders())
	if _, own := c.Strategies[p.Strategy.Orders()]; !own {
		key = "pools"
		for i := range c.Pools {
			if &c.Pools[i] == p {
				key = child(elem("pools", i), "strategy")
			}
		}
	}
	return c.Note(key, fmt.Sprintf("pool %q: %s", p.Name, what), "")
}

// Note returns what was found of a key after the file was read, with its line.
func (c *Config) Note(key, what, remedy string) Problem {
	r := report{file: c.Path, lines: c.lines}
	r.add(key, what, remedy)
	return r.list[0]
}

// unknownOption matches a strategy's error about an option that it does not know. The words are the SDK's, as they are
// or quoted by the host.
var unknownOption = regexp.MustCompile(`sdk: unknown option \\?"([^"\\]*)\\?"; ` +
	`the strategy (?:knows ([^")\\]*)|has no options)`)

// optionProblem returns the problem of a pool's strategy that was given an option which it does not know, with the line
// of the option. ok is false for another problem.
func (c *Config) optionProblem(p *Pool, what string) (_ Problem, ok bool) {
	m := unknownOption.FindStringSubmatch(what)
	if m == nil {
		return Problem{}, false
	}
	remedy := "remove it: the strategy has none"
	if m[2] != "" {
		remedy = remedyFor(m[1], strings.Fields(m[2]))
	}
	key := child(child(child("strategies", p.Strategy.Orders()), "options"), m[1])
	for i := range c.Pools {
		if _, own := p.Options[m[1]]; own && &c.Pools[i] == p {
			key = child(child(elem("pools", i), "options"), m[1])
		}
	}
	what = fmt.Sprintf("the strategy %s of pool %q has no such option", p.Strategy.Orders(), p.Name)
	return c.Note(key, what, remedy), true
}
