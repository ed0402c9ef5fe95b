package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Sizes of the charts, in pixels.
const (
	rowHeight  = 22
	topMargin  = 26
	labelWidth = 190
	plotWidth  = 470
	barsLeft   = labelWidth + plotWidth + 30
	barsWidth  = 110
	chartWidth = barsLeft + barsWidth + 60
)

// An axis is logarithmic: times and ratios of strategies differ by factors.
type axis struct{ low, high float64 }

// around returns an axis that shows all of v that is positive, and a little beyond.
func around(v []float64) axis {
	a := axis{low: math.Inf(1), high: 0}
	for _, x := range v {
		if x > 0 {
			a.low, a.high = min(a.low, x), max(a.high, x)
		}
	}
	if a.high == 0 {
		return axis{low: .5, high: 2}
	}
	return axis{low: a.low / 1.15, high: a.high * 1.15}
}

// at returns the place of v. What lies beyond the axis stands at its end.
func (a axis) at(v float64) float64 {
	v = min(max(v, a.low), a.high)
	return math.Round(10*(labelWidth+plotWidth*math.Log(v/a.low)/math.Log(a.high/a.low))) / 10
}

// tick is a line of the axis with its label.
type tick struct {
	X    float64
	Text string
}

// ticks are at 1, 2 and 5 times the powers of ten, or at more if these are few, or only at the powers if they are many.
func (a axis) ticks() (ticks []tick) {
	steps := []float64{1, 2, 5}
	switch {
	case a.high/a.low > 1000:
		steps = steps[:1]
	case a.high/a.low < 8:
		steps = []float64{1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 7, 8, 9}
	}
	for e := math.Floor(math.Log10(a.low)); e <= math.Log10(a.high); e++ {
		for _, s := range steps {
			if v := s * math.Pow(10, e); v >= a.low && v <= a.high {
				ticks = append(ticks, tick{X: a.at(v), Text: fmt.Sprintf("%g", math.Round(v*1e6)/1e6)})
			}
		}
	}
	return ticks
}

// mark is a value with its whisker.
type mark struct {
	X, Low, High float64
	Tip          string
	Class        string
}

// place puts an estimate on the axis.
func (a axis) place(e Estimate, class, tip string) mark {
	return mark{X: a.at(e.Value), Low: a.at(e.Value - e.Error), High: a.at(e.Value + e.Error), Tip: tip, Class: class}
}

// chart is one picture: rows of marks over an axis, each with a bar at its right if there are bars.
type chart struct {
	Title  string
	Width  int
	Height int
	Bottom int
	Ticks  []tick
	Tall   int    // from top to bottom of the plot
	Band   *band  // a stretch of the axis to stand out
	Bars   string // heads what is right of the plot
	Rows   []chartRow
}

type band struct{ X, Width float64 }

type chartRow struct {
	Y     int
	Label string
	Class string
	Marks []mark
	Bar   float64 // width
	BarX  int
	Text  string // right of the bar
}

func (c *chart) layOut() {
	c.Width, c.Bottom = chartWidth, topMargin+rowHeight*len(c.Rows)
	c.Height, c.Tall = c.Bottom+22, c.Bottom-22
	for i := range c.Rows {
		c.Rows[i].Y, c.Rows[i].BarX = topMargin+rowHeight*i+rowHeight/2, barsLeft
	}
}

// timesChart shows mean and P90 of TTFT and the hit rate of every strategy in a scenario, the fastest first.
func timesChart(r *Report, scenario string) chart {
	type times struct {
		name      string
		mean, p90 Estimate
		hit       float64
	}
	var all []times
	var span []float64
	for _, s := range r.strategies(scenario) {
		t := times{name: s, mean: r.estimate(scenario, s, figureByKey(ttftMean)),
			p90: r.estimate(scenario, s, figureByKey(ttftP90)), hit: r.estimate(scenario, s, figureByKey("hit_rate")).Value}
		all = append(all, t)
		span = append(span, t.mean.Value, t.p90.Value)
	}
	slices.SortStableFunc(all, func(a, b times) int { return cmp.Compare(a.mean.Value, b.mean.Value) })
	a := around(span)
	c := chart{Title: "TTFT in seconds: mean (disc) and P90 (ring)", Ticks: a.ticks(), Bars: "hit rate"}
	for _, t := range all {
		row := chartRow{Label: t.name, Class: "peer", Bar: math.Round(barsWidth * t.hit), Text: percent(t.hit)}
		if !r.isPeer(t.name) {
			row.Class = "ours"
		}
		tip := func(what string, e Estimate) string {
			return fmt.Sprintf("%s: %s %s ±%s s", t.name, what, seconds(e.Value), seconds(e.Error))
		}
		row.Marks = []mark{a.place(t.p90, "ring", tip("P90", t.p90)), a.place(t.mean, "disc", tip("mean", t.mean))}
		c.Rows = append(c.Rows, row)
	}
	c.layOut()
	return c
}

// ratiosChart shows how a strategy stands to the best peer in every cell.
func ratiosChart(cells []Cell, strategy string) chart {
	span := []float64{.8, 1.25}
	for i := range cells {
		if ratio, ok := cells[i].Ratios[strategy]; ok {
			span = append(span, ratio.Value)
		}
	}
	a := around(span)
	c := chart{Ticks: a.ticks(), Title: strategy + ": TTFT over the best peer's; the band is from equal to 5 % slower",
		Bars: "best peer", Band: &band{X: a.at(1), Width: a.at(Within) - a.at(1)}}
	for i := range cells {
		ratio, ok := cells[i].Ratios[strategy]
		if !ok {
			continue
		}
		row := chartRow{Label: cells[i].Scenario + " " + short(cells[i].Figure), Class: "good", Text: cells[i].BestPeer}
		if !ratio.Within {
			row.Class = "bad"
		}
		row.Marks = []mark{a.place(ratio.Estimate, "disc",
			fmt.Sprintf("%s: %.3f ±%.3f of %s", row.Label, ratio.Value, ratio.Error, cells[i].BestPeer))}
		c.Rows = append(c.Rows, row)
	}
	c.layOut()
	return c
}
