package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

const module = "github.com/warmpath/warmpath/"

func main() {
	complete, err := run(os.Stdin, os.Stdout, targets)
	if err != nil {
		fmt.Fprintln(os.Stderr, "benchjson:", err)
	}
	if err != nil || !complete {
		os.Exit(1)
	}
}

// figure is one line of the output.
type figure struct {
	Name    string   `json:"name"`
	Value   *float64 `json:"value"` // null if it is missing
	Unit    string   `json:"unit"`
	Target  *float64 `json:"target,omitempty"`
	OK      bool     `json:"ok"`
	Missing bool     `json:"missing,omitempty"`
}

// run reads go test's output and writes the wanted figures. It tells whether each of them was there.
func run(r io.Reader, w io.Writer, wanted []target) (complete bool, err error) {
	got, err := read(r)
	if err != nil {
		return false, err
	}
	complete = true
	out := json.NewEncoder(w)
	for _, t := range wanted {
		f := got.figure(t)
		complete = complete && !f.Missing
		if err := out.Encode(f); err != nil {
			return false, err
		}
	}
	return complete, nil
}

// results holds the values seen, by name and unit.
type results map[[2]string][]float64

// benchLine is a benchmark's name without the number of processors, and what follows it.
var benchLine = regexp.MustCompile(`^Benchmark(\S+?)(?:-\d+)?\s+\d+\s+(.+)$`)

// read collects the value-unit pairs of each benchmark line. Other lines are go test's own.
func read(r io.Reader) (results, error) {
	got := make(results)
	room := ""
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		line := lines.Text()
		if p, ok := strings.CutPrefix(line, "pkg: "); ok {
			room = strings.TrimPrefix(p, module)
			continue
		}
		m := benchLine.FindStringSubmatch(line)
		if m == nil {
			if strings.HasPrefix(line, "FAIL") || strings.HasPrefix(line, "--- FAIL") {
				return nil, fmt.Errorf("a benchmark failed: %s", line)
			}
			continue
		}
		fields := strings.Fields(m[2])
		for i := 0; i+1 < len(fields); i += 2 {
			v, err := strconv.ParseFloat(fields[i], 64)
			if err != nil {
				return nil, fmt.Errorf("no number in %q", line)
			}
			key := [2]string{room + "." + m[1], fields[i+1]}
			got[key] = append(got[key], v)
		}
	}
	return got, lines.Err()
}

// figure judges the median of what was seen against the target.
func (g results) figure(t target) figure {
	f := figure{Name: t.name, Unit: t.unit}
	v, ok := g.median(t.name, t.unit)
	if t.over != "" {
		base, found := g.median(t.over, t.unit)
		f.Name, f.Unit = t.name+" over "+t.over, "ratio"
		v, ok = v/base, ok && found && base > 0
	}
	if t.limit != 0 || t.atMost {
		f.Target = &t.limit
	}
	if !ok {
		f.Missing = true
		return f
	}
	f.Value = &v
	f.OK = f.Target == nil || t.atMost && v <= t.limit || !t.atMost && v >= t.limit
	return f
}

func (g results) median(name, unit string) (float64, bool) {
	v := slices.Sorted(slices.Values(g[[2]string{name, unit}]))
	if len(v) == 0 {
		return 0, false
	}
	return v[len(v)/2], true
}
