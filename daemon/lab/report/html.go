package report

import (
	_ "embed"
	"html/template"
	"io"
)

//go:embed page.html
var pageText string

var page = template.Must(template.New("page").Parse(pageText))

// WriteHTML writes one page with the same tables and a chart of each scenario. It needs no script and no network, and
// follows the reader's light or dark theme.
func (r *Report) WriteHTML(w io.Writer) error {
	cells := r.Cells()
	names := r.names(cells)
	p := pageData{Report: r, Tallies: Tallies(cells), Names: names, Within: Within}
	for _, f := range figures {
		p.Heads = append(p.Heads, f.Name)
	}
	for i := range cells {
		p.Cells = append(p.Cells, cellData(&cells[i], names))
	}
	for _, s := range names {
		p.Ratios = append(p.Ratios, ratiosChart(cells, s))
	}
	for _, s := range r.Scenarios() {
		p.Scenarios = append(p.Scenarios, newScenario(r, s))
	}
	return page.Execute(w, p)
}

type pageData struct {
	*Report
	Tallies   []Tally
	Names     []string // of the strategies that are compared
	Heads     []string
	Within    float64
	Cells     []cellRow
	Ratios    []chart
	Scenarios []scenarioData
}

type cellRow struct {
	Name, Best, BestPeer string
	Seeds                int
	Ratios               []ratioText
}

type ratioText struct{ Text, Class string }

type scenarioData struct {
	Name  string
	Chart chart
	Rows  []figureRow
}

type figureRow struct {
	Strategy string
	Class    string
	Values   []string
}

func cellData(c *Cell, names []string) cellRow {
	row := cellRow{Name: c.Scenario + " " + short(c.Figure), Best: figureByKey(c.Figure).show(c.Best.Value),
		BestPeer: c.BestPeer, Seeds: c.Seeds}
	for _, s := range names {
		class := "bad"
		if c.Ratios[s].Within {
			class = "good"
		}
		row.Ratios = append(row.Ratios, ratioText{Text: c.mark(s), Class: class})
	}
	return row
}

func newScenario(r *Report, scenario string) scenarioData {
	d := scenarioData{Name: scenario, Chart: timesChart(r, scenario)}
	for _, s := range r.strategies(scenario) {
		row := figureRow{Strategy: s, Class: "ours"}
		if r.isPeer(s) {
			row.Class = "peer"
		}
		for i := range figures {
			row.Values = append(row.Values, shown(r.estimate(scenario, s, &figures[i]), &figures[i]))
		}
		d.Rows = append(d.Rows, row)
	}
	return d
}
