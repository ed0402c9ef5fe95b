package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/warmpath/warmpath/daemon/lab"
	"github.com/warmpath/warmpath/daemon/lab/report"
	"github.com/warmpath/warmpath/daemon/lab/setup"
)

// columns are the scenarios; the first of those that are left is measured first.
var columns = []string{"A", "B", "O", "S", "C", "D", "Z", "E", "F", "T", "G", "L", "H", "X",
	"conv", "conv+cpu", "syn", "syn+cpu", "agents", "agents-full", "agents-surge", "agents+cpu"}

// strategies are the two that are judged, outside of the sandbox (they choose alike there), and rules of others with
// constants that were tuned on training seeds. Rules that won no column of any table yet are left out.
var strategies = []string{"native:prefixaware", "native:kvaware", "preble threshold=0.7 rebalance=8 eviction=1",
	"dynamo scale=64 credit=3", "loadaware beta=0.3", "smg threshold=0.3 gap=32 factor=1.1",
	"llm-d prefix=12 queue=6 kv=2", "aibrix deviations=4 gap=16"}

func main() {
	first := flag.Uint64("first", 101, "first seed; the constants were tuned on other ones")
	n := flag.Uint64("n", 2, "seeds")
	trace := flag.String("trace", "", "Mooncake's conversation trace; without it conv and conv+cpu are not measured")
	keep := flag.String("keep", ".cache/labcells", "folder of what was measured")
	budget := flag.Duration("for", 24*time.Hour, "begin no column after so long")
	only := flag.String("columns", strings.Join(columns, ","), "columns, with a comma between")
	show := flag.Bool("print", false, "measure nothing, print the table of what was measured")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	m := measurement{dir: *keep, trace: *trace, until: time.Now().Add(*budget)}
	if *show {
		m.until = time.Time{}
	}
	asked := strings.Split(*only, ",")
	for seed := *first; seed < *first+*n; seed++ {
		for _, column := range asked {
			if err := m.add(ctx, column, seed); err != nil {
				fmt.Fprintln(os.Stderr, "labcells:", err)
				os.Exit(1)
			}
		}
	}
	write(os.Stdout, &m.all, asked)
}

// measurement is what there is so far.
type measurement struct {
	dir, trace string
	until      time.Time
	all        report.Report
}

// add reads what was measured of one column with one seed, and measures what is missing.
func (m *measurement) add(ctx context.Context, column string, seed uint64) error {
	path := filepath.Join(m.dir, fmt.Sprintf("%s-%d.json", column, seed))
	known, err := kept(path)
	if err != nil {
		return err
	}
	left := slices.DeleteFunc(slices.Clone(strategies), func(name string) bool {
		return slices.ContainsFunc(known.Runs, func(r report.Run) bool { return r.Strategy == name })
	})
	if len(left) > 0 && time.Now().Before(m.until) {
		n := len(known.Runs)
		known, err = m.measure(ctx, column, seed, left, known)
		if err != nil {
			return err
		}
		if len(known.Runs) > n {
			if err := save(path, &known); err != nil {
				return err
			}
		}
	}
	if len(known.Runs) == len(strategies) { // the best of some of them is not the best
		m.all.Runs = append(m.all.Runs, known.Runs...)
	}
	return nil
}

// kept reads a report of one column with one seed, empty if there is none, without strategies that are not compared.
func kept(path string) (report.Report, error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return report.Report{}, nil
	}
	if err != nil {
		return report.Report{}, err
	}
	defer file.Close()
	r, err := report.ReadJSON(file)
	if err != nil {
		return report.Report{}, fmt.Errorf("%s: %w", path, err)
	}
	r.Runs = slices.DeleteFunc(r.Runs, func(r report.Run) bool { return !slices.Contains(strategies, r.Strategy) })
	return r, nil
}

// measure runs strategies on a column with one seed, and adds them to what is known.
func (m *measurement) measure(
	ctx context.Context, column string, seed uint64, names []string, known report.Report,
) (report.Report, error) {
	sc, err := setup.Read(column)
	if err != nil {
		return known, err
	}
	if sc.Trace.File != "" {
		if m.trace == "" {
			return known, nil
		}
		sc.Trace.File = m.trace
	}
	c := lab.Config{Scenarios: []*setup.Scenario{sc}, Seeds: []uint64{seed}, Processors: lab.Processors()}
	for _, name := range names {
		found, err := lab.Find(name)
		if err != nil {
			return known, err
		}
		c.Strategies = append(c.Strategies, found...)
	}
	began := time.Now()
	runs, err := lab.Run(ctx, c)
	if err != nil {
		return known, err
	}
	fmt.Fprintf(os.Stderr, "labcells: %d strategies on %s with seed %d took %.0f s\n", len(names), column, seed,
		time.Since(began).Seconds())
	r := lab.Report(&c, runs)
	r.Runs = append(known.Runs, r.Runs...)
	return r, nil
}

// save writes a report whole or not at all.
func save(path string, r *report.Report) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	var text strings.Builder
	if err := r.WriteJSON(&text); err != nil {
		return err
	}
	if err := os.WriteFile(path+".new", []byte(text.String()), 0o644); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// write writes the table.
func write(w io.Writer, r *report.Report, asked []string) {
	cells := r.Cells()
	fmt.Fprintf(w, "| | seeds | best of others, s | prefixaware | kvaware |\n| --- | --- | --- | --- | --- |\n")
	for i := range cells {
		c := &cells[i]
		figure := "mean"
		if strings.HasSuffix(c.Figure, "p90") {
			figure = "P90"
		}
		rule, _, _ := strings.Cut(c.BestPeer, " ")
		fmt.Fprintf(w, "| %s %s | %d | %.3g %s | %s | %s |\n", c.Scenario, figure, c.Seeds, c.Best.Value, rule,
			mark(c, strategies[0]), mark(c, strategies[1]))
	}
	fmt.Fprintln(w)
	for _, column := range asked {
		if strings.HasPrefix(column, "agents") {
			writeWhole(w, r, column)
		}
	}
	for _, t := range report.Tallies(cells) {
		fmt.Fprintf(w, "%s: within 5 %% of the best in %d of %d cells, geometric mean %.3f, worst %.2f (%s)\n",
			strings.TrimPrefix(t.Strategy, "native:"), t.Within, t.Cells, t.Geometric, t.Worst, t.WorstCell)
	}
	missing := slices.DeleteFunc(slices.Clone(asked), func(column string) bool {
		return slices.ContainsFunc(cells, func(c report.Cell) bool { return c.Scenario == column })
	})
	if len(missing) > 0 {
		fmt.Fprintf(w, "not measured: %s\n", strings.Join(missing, ", "))
	}
}

// writeWhole writes a table of all strategies in one column: its tail and what its engines preempted decide there.
func writeWhole(w io.Writer, r *report.Report, column string) {
	fmt.Fprintf(w, "| %s | mean, s | P90 | P99 | later P90 | hit rate, %% | preempted |\n", column)
	fmt.Fprintln(w, "| --- | --- | --- | --- | --- | --- | --- |")
	for _, name := range strategies {
		var sum report.Figures
		var hits, n float64
		for i := range r.Runs {
			f := &r.Runs[i].Figures
			if r.Runs[i].Scenario != column || r.Runs[i].Strategy != name {
				continue
			}
			n++
			hits += f.HitRate()
			sum.TTFTMean += f.TTFTMean
			sum.TTFTP90 += f.TTFTP90
			sum.TTFTP99 += f.TTFTP99
			sum.LaterP90 += f.LaterP90
			sum.Preemptions += f.Preemptions
		}
		if n > 0 {
			fmt.Fprintf(w, "| %s | %.3f | %.3f | %.2f | %.3f | %.1f | %.1f |\n", strings.TrimPrefix(name, "native:"),
				sum.TTFTMean/n, sum.TTFTP90/n, sum.TTFTP99/n, sum.LaterP90/n, 100*hits/n, float64(sum.Preemptions)/n)
		}
	}
	fmt.Fprintln(w)
}

// mark is a ratio with its interval, bold if it is over the mark.
func mark(c *report.Cell, strategy string) string {
	r := c.Ratios[strategy]
	text := fmt.Sprintf("%.3f", r.Value)
	if c.Seeds > 1 {
		text += fmt.Sprintf("±%.3f", r.Error)
	}
	if !r.Within {
		return "**" + text + "**"
	}
	return text
}
