package report

import (
	"bytes"
	_ "embed"
	"fmt"
	"io"
	"strings"
)

//go:embed page.css
var style string

// WriteHTML writes one page with the same tables and a chart of each scenario. It needs no script and no network, and
// follows the reader's light or dark theme.
func (r *Report) WriteHTML(w io.Writer) error {
	var p htmlPage
	p.add(`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>%v</title>
<style>
`, r.Title)
	p.WriteString(style)
	p.add("</style>\n</head>\n<body>\n<h1>%v</h1>\n<ul class=\"soft\">", r.Title)
	for _, c := range r.Conditions {
		p.add("<li>%v</li>", c)
	}
	p.add("</ul>\n\n")
	cells := r.Cells()
	if len(cells) > 0 {
		p.addPeers(r, cells)
	}
	p.add("\n\n")
	for _, s := range r.Scenarios() {
		p.addScenario(r, s)
	}
	p.add(`
`+legend+`
</body>
</html>
`, r.Price)
	_, err := w.Write(p.Bytes())
	return err
}

// legend takes the price of an hour.
const legend = `<p class="soft">TTFT: time to first token. TPOT: mean time of a token after the first. ` +
	"Hit rate: share of the prompt tokens found cached, in\nany tier. Imbalance: prefill seconds of the busiest worker " +
	"over the mean. Cost: of 1,000 output tokens where a GPU hour costs %v.</p>"

// htmlPage is HTML that grows. It is no html/template: with one in the binary the linker keeps every exported method of
// every type, as it cannot know which of them a template calls.
type htmlPage struct{ bytes.Buffer }

// special are the characters that end a text or an attribute.
var special = strings.NewReplacer("\x00", "\uFFFD", `"`, "&#34;", "&", "&amp;", "'", "&#39;", "+", "&#43;",
	"<", "&lt;", ">", "&gt;")

// add appends a format with its values, each escaped. A value stands in a text, or in an attribute within quotes.
func (p *htmlPage) add(format string, values ...any) {
	for i, v := range values {
		values[i] = special.Replace(fmt.Sprint(v))
	}
	fmt.Fprintf(p, format, values...)
}

// addPeers adds the comparison with the best peer.
func (p *htmlPage) addPeers(r *Report, cells []Cell) {
	names := r.names(cells)
	p.add(`
<h2>Against the best peer</h2>
<p>TTFT divided by that of the peer with the smallest mean in that row, over the same seeds; `+
		`± is twice the jackknife's error.
Up to %v counts as equal (*: over it; ?: the interval lies on both sides).</p>
<ul>`, Within)
	for _, t := range Tallies(cells) {
		p.add("<li><b>%v</b>: within 5 %% in %v of %v, geometric mean %v, worst %v (%v)</li>", t.Strategy, t.Within,
			t.Cells, fmt.Sprintf("%.3f", t.Geometric), fmt.Sprintf("%.2f", t.Worst), t.WorstCell)
	}
	p.add("</ul>\n")
	for _, s := range names {
		p.addChart(ratiosChart(cells, s))
	}
	p.add("\n<div class=\"wide\"><table>\n<tr><th></th><th>seeds</th><th>best peer</th><th>s</th>")
	for _, s := range names {
		p.add("<th>%v</th>", s)
	}
	p.add("</tr>\n")
	for i := range cells {
		p.addCell(&cells[i], names)
	}
	p.add("</table></div>\n")
}

func (p *htmlPage) addCell(c *Cell, names []string) {
	p.add("<tr><td>%v</td><td>%v</td><td>%v</td><td>%v</td>", c.Scenario+" "+short(c.Figure), c.Seeds, c.BestPeer,
		figureByKey(c.Figure).show(c.Best.Value))
	for _, s := range names {
		class := "bad"
		if c.Ratios[s].Within {
			class = "good"
		}
		p.add(`<td class="%v">%v</td>`, class, c.mark(s))
	}
	p.add("</tr>\n")
}

// addScenario adds a scenario's chart and a row of figures for each strategy.
func (p *htmlPage) addScenario(r *Report, scenario string) {
	p.add("\n<h2>%v</h2>\n", scenario)
	p.addChart(timesChart(r, scenario))
	p.add("\n<div class=\"wide\"><table>\n<tr><th></th>")
	columns := columnsOf(r, scenario)
	for i := range columns {
		p.add("<th>%v</th>", columns[i].Name)
	}
	p.add("</tr>\n")
	for _, s := range r.strategies(scenario) {
		class := "ours"
		if r.isPeer(s) {
			class = "peer"
		}
		p.add(`<tr class="%v"><td>%v</td>`, class, s)
		for i := range columns {
			p.add("<td>%v</td>", shown(r.estimate(scenario, s, &columns[i]), &columns[i]))
		}
		p.add("</tr>\n")
	}
	p.add("</table></div>\n")
}
