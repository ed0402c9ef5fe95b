package report

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"
)

// WriteText writes a table of each scenario with a row for each strategy, and, if there are peers, how the others
// stand to the best of them.
func (r *Report) WriteText(w io.Writer) error {
	p := printer{w: w}
	p.line("%s", r.Title)
	for _, c := range r.Conditions {
		p.line("  %s", c)
	}
	for _, s := range r.Scenarios() {
		p.line("\n%s", s)
		p.scenario(r, s)
	}
	if cells := r.Cells(); len(cells) > 0 {
		p.line("\nRatio to the best peer of each row; * is over %g, ? where the interval leaves it open.", Within)
		p.cells(cells, r.names(cells))
		for _, t := range Tallies(cells) {
			p.line("%s: within 5 %% of the best peer in %d of %d, geometric mean %.3f, worst %.2f (%s)",
				t.Strategy, t.Within, t.Cells, t.Geometric, t.Worst, t.WorstCell)
		}
	}
	return p.err
}

// printer keeps the first error.
type printer struct {
	w   io.Writer
	err error
}

func (p *printer) line(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format+"\n", args...)
	}
}

func (p *printer) table(rows [][]string) {
	t := tabwriter.NewWriter(p.w, 0, 0, 2, ' ', tabwriter.AlignRight)
	widest := 0
	for _, row := range rows {
		widest = max(widest, len(row[0]))
	}
	for _, row := range rows {
		fmt.Fprintf(t, "%-*s\t", widest, row[0])
		for _, c := range row[1:] {
			fmt.Fprintf(t, "%s\t", c)
		}
		fmt.Fprintln(t)
	}
	if p.err == nil {
		p.err = t.Flush()
	}
}

func (p *printer) scenario(r *Report, scenario string) {
	head := []string{""}
	columns := columnsOf(r, scenario)
	for i := range columns {
		head = append(head, columns[i].Name)
	}
	rows := [][]string{head}
	for _, s := range r.strategies(scenario) {
		row := []string{s}
		for i := range columns {
			row = append(row, shown(r.estimate(scenario, s, &columns[i]), &columns[i]))
		}
		rows = append(rows, row)
	}
	p.table(rows)
}

// shown is a value, with its interval where the figure is one to judge by.
func shown(e Estimate, f *figure) string {
	if (f.Key == ttftMean || f.Key == ttftP90) && e.Error > 0 {
		return f.show(e.Value) + " ±" + f.show(e.Error)
	}
	return f.show(e.Value)
}

func (p *printer) cells(cells []Cell, names []string) {
	rows := [][]string{append([]string{"", "seeds", "best peer"}, names...)}
	for i := range cells {
		c := &cells[i]
		f := figureByKey(c.Figure)
		row := []string{c.Scenario + " " + short(c.Figure), fmt.Sprint(c.Seeds), f.show(c.Best.Value) + " " + c.BestPeer}
		for _, s := range names {
			row = append(row, c.mark(s))
		}
		rows = append(rows, row)
	}
	p.table(rows)
}

// mark is the ratio of a strategy as the tables show it; "-" where it did not run.
func (c *Cell) mark(strategy string) string {
	ratio, ok := c.Ratios[strategy]
	if !ok {
		return "-"
	}
	text := fmt.Sprintf("%.3f±%.3f", ratio.Value, ratio.Error)
	if !ratio.Within {
		text += " *"
	}
	if !ratio.Sure {
		text += " ?"
	}
	return text
}

// WriteJSON writes one object: the title, the conditions, every run, the cells and their tallies.
func (r *Report) WriteJSON(w io.Writer) error {
	cells := r.Cells()
	enc := json.NewEncoder(w)
	enc.SetIndent("", " ")
	return enc.Encode(struct {
		Title      string   `json:"title"`
		Conditions []string `json:"conditions,omitempty"`
		Price      float64  `json:"gpu_hour_price"`
		Runs       []Run    `json:"runs"`
		Cells      []Cell   `json:"cells,omitempty"`
		Tallies    []Tally  `json:"tallies,omitempty"`
	}{Title: r.Title, Conditions: r.Conditions, Price: r.Price, Runs: r.Runs, Cells: cells, Tallies: Tallies(cells)})
}

// ReadJSON reads what WriteJSON wrote, so that the runs of several commands can stand in one report.
func ReadJSON(rd io.Reader) (Report, error) {
	var r struct {
		Title      string   `json:"title"`
		Conditions []string `json:"conditions"`
		Price      float64  `json:"gpu_hour_price"`
		Runs       []Run    `json:"runs"`
	}
	err := json.NewDecoder(rd).Decode(&r)
	return Report{Title: r.Title, Conditions: r.Conditions, Price: r.Price, Runs: r.Runs}, err
}
