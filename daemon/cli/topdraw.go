package cli

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"golang.org/x/term"

	"github.com/warmpath/warmpath/daemon/admin/decisions"
	"github.com/warmpath/warmpath/daemon/admin/metrics"
	"github.com/warmpath/warmpath/daemon/admin/operator"
)

// screen is the size of a terminal; zero = any page fits.
type screen struct{ columns, rows int }

// size returns the size of the terminal that out is.
func size(out io.Writer, live bool) (s screen) {
	if f, ok := out.(*os.File); ok && live {
		if columns, rows, err := term.GetSize(int(f.Fd())); err == nil && columns > 0 && rows > 0 {
			s = screen{columns, rows}
		}
	}
	return s
}

// section is a part of the page: lines, of which the first head are always shown.
type section struct {
	lines []string
	head  int
	most  int // of 100 rows of the screen, if other sections need the rest
}

// draw writes the page in the order of the page in a browser: what is wrong, the pools, the workers, the decisions.
// Of pools and workers those in trouble come first. Lines that are too long, and sections that have no room, are cut.
func (s screen) draw(o *operator.Overview, hours []operator.PoolHour, last []decisions.Decision) ([]byte, error) {
	wide := s.rows == 0 || s.columns >= wideScreen
	sections := []section{s.wrong(o), poolRows(o, hours), waitingRows(o), workerRows(o, wide), decisionRows(last)}
	var page bytes.Buffer
	left := s.rows
	for i, part := range sections {
		lines := part.lines
		if s.rows > 0 {
			lines = part.cut(left, s.rows, sections[i+1:])
			left -= len(lines)
		}
		for _, line := range lines {
			page.WriteString(s.cut(strings.TrimRight(line, " ")) + "\n")
		}
	}
	return page.Bytes(), nil
}

// cut returns the lines for which there is room: the section's share of the rows, and the rows that later sections do
// not need.
func (p *section) cut(left, rows int, after []section) []string {
	free := left
	for i := range after {
		free -= min(len(after[i].lines), after[i].most*rows/100)
	}
	room := min(left, max(free, p.most*rows/100, min(p.head+1, left)))
	if len(p.lines) <= room {
		return p.lines
	}
	lines := slices.Clone(p.lines[:max(0, room)])
	if room > p.head+1 { // otherwise this line would replace the only row
		lines[room-1] = fmt.Sprintf("... and %d more", len(p.lines)-room+1)
	}
	return lines
}

// wideScreen is the width in columns from which the workers' time per output token is shown.
const wideScreen = 140

// cut shortens a line to the screen.
func (s screen) cut(line string) string {
	if r := []rune(line); len(r) > s.columns && s.rows > 0 {
		return string(r[:s.columns])
	}
	return line
}

// wrong is the head and a line for each warning, with its command below if there is no room beside it.
func (s screen) wrong(o *operator.Overview) section {
	up, all := 0, 0
	for i := range o.Pools {
		up, all = up+o.Pools[i].Up, all+o.Pools[i].Total
	}
	lines := []string{fmt.Sprintf("%s  %d of %d workers up, %d in flight, %s, warmpath %s, up %s", stateOf(o), up, all,
		o.InFlight, count(o.Clients, "connection"), o.Version, ago(o.Began, o.Now))}
	for _, w := range o.Warnings {
		line := fmt.Sprintf("%s %s: ", strings.ToUpper(w.Grade), w.Title)
		if room := s.columns - len(line) - len(w.Command) - 3; s.rows > 0 && len(w.Text) > room {
			w.Text = string([]rune(w.Text)[:max(0, min(room, len([]rune(w.Text))))])
		}
		lines = append(lines, line+w.Text+"   "+w.Command)
	}
	return section{lines: lines, head: 1, most: 30}
}

// poolRows has a line for each pool, with its last minute. Those that cannot serve or refuse requests come first.
func poolRows(o *operator.Overview, hours []operator.PoolHour) section {
	order := make([]*operator.PoolOverview, len(o.Pools))
	minutes := map[string]*operator.PoolHour{}
	for i := range hours {
		minutes[hours[i].Pool] = &hours[i]
	}
	for i := range o.Pools {
		order[i] = &o.Pools[i]
		if minutes[o.Pools[i].Name] == nil {
			minutes[o.Pools[i].Name] = &operator.PoolHour{Pool: o.Pools[i].Name}
		}
	}
	slices.SortStableFunc(order, func(a, b *operator.PoolOverview) int {
		return cmp.Compare(poolTrouble(a), poolTrouble(b))
	})
	return tabbed("\nLAST MINUTE\tUP\tDEMAND\tREQUESTS\tREFUSED\tFAILED\tFIRST MEDIAN\tFIRST 90%\tHITS\tBELIEVED\t"+
		"OUT TOKENS", 25, func(w io.Writer) {
		for _, p := range order {
			name, rest, _ := strings.Cut(lastMinute(minutes[p.Name]), "\t")
			fmt.Fprintf(w, "%s\t%d/%d\t%.1fs\t%s\n", name, p.Up, p.Total, p.Demand, rest)
		}
	})
}

// waitingRows has a line for each key, or agent of a key, whose requests wait in the router; it is empty if none do.
func waitingRows(o *operator.Overview) section {
	if !slices.ContainsFunc(o.Pools, func(p operator.PoolOverview) bool { return p.Queue != nil }) {
		return section{}
	}
	return tabbed("\nWAITS IN THE ROUTER\tPOOL\tREQUESTS\tPRIORITY\tPREFILL\tLAST SERVED\tWHY", 15, func(w io.Writer) {
		for i := range o.Pools {
			p := &o.Pools[i]
			if p.Queue == nil {
				continue
			}
			for _, f := range p.Queue.Flows {
				fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%.1fs\t%s\t%s\n", f.Flow, p.Name, f.Requests, f.Class, f.Cost,
					ago(f.Served, o.Now), p.WaitsFor(f.Limit))
			}
			fmt.Fprintf(w, "all\t%s\t%d of %d\t\t\t\t\n", p.Name, p.Queue.Waiting, p.Queue.Most)
		}
	})
}

// poolTrouble is a sort key: it is lower for pools that an operator must see first.
func poolTrouble(p *operator.PoolOverview) int {
	switch {
	case p.WhyNot != "":
		return 0
	case p.Up < p.Total || p.Quarantine:
		return 1
	}
	return 2
}

// workerRows has a line for each worker of all pools, those in trouble first. Workers of a pool that cannot serve
// come after single sick workers, as the pool is listed as a whole.
func workerRows(o *operator.Overview, wide bool) section {
	type row struct {
		pool string
		rank int
		operator.Medians
		*operator.WorkerState
	}
	var all []row
	for i := range o.Pools {
		p := &o.Pools[i]
		for k := range p.Workers {
			w := &p.Workers[k]
			all = append(all, row{pool: p.Name, rank: p.Rank(w), Medians: p.Medians[w.Labels["role"]], WorkerState: w})
		}
	}
	slices.SortStableFunc(all, func(a, b row) int { return cmp.Compare(a.rank, b.rank) })
	head := "\nWORKER\tPOOL\tSTATE\tSINCE\tIN FLIGHT\tWAITING\tQUEUE\tKV\tHITS\tSLOWNESS\tFIRST\t"
	if wide {
		head += "TPOT\t"
	}
	restarts := slices.ContainsFunc(all, func(r row) bool { return r.Restarts > 0 })
	if restarts {
		head += "RESTARTS\t"
	}
	head += "WHY"
	return tabbed(head, 30, func(w io.Writer) {
		for _, r := range all {
			hits := "-"
			if r.Hits >= 0 {
				hits = fmt.Sprintf("%.0f%%", 100*r.Hits)
			}
			each := ""
			if wide {
				each = mark(perToken(r.TPOT), r.TPOT, r.PerToken) + "\t"
			}
			if restarts && r.Restarts > 0 {
				each += fmt.Sprintf("%d, %s ago", r.Restarts, ago(r.Restarted, o.Now))
			}
			if restarts {
				each += "\t"
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%d\t%.2fs\t%.0f%%\t%s\t%.2f\t%s\t%s%s\n", named(r.WorkerState), r.pool, r.State,
				ago(r.Since, o.Now), inFlight(r.WorkerState), r.Waiting, r.Queue, 100*r.KVUsage, hits, r.Slowness,
				mark(first(r.TTFT), r.TTFT, r.First), each, r.WhyOf())
		}
	})
}

// inFlight writes the requests at a worker, with those of other routers and the limit.
func inFlight(w *operator.WorkerState) string {
	text := fmt.Sprint(w.InFlight)
	if w.Others > 0 {
		text += fmt.Sprintf("+%d", w.Others)
	}
	if w.Limit > 0 {
		text += fmt.Sprintf("/%d", w.Limit)
	}
	return text
}

func decisionRows(last []decisions.Decision) section {
	return tabbed("\nTIME\tKEY\tMODEL\tWORKER\tPROMPT\tCACHED\tFIRST\tTOTAL\tEND\tWHY", 15, func(w io.Writer) {
		for i := range last {
			fmt.Fprintln(w, lineOf(&last[i]))
		}
	})
}

// tabbed aligns a table, with an empty line before its head.
func tabbed(head string, most int, rows func(io.Writer)) section {
	var b bytes.Buffer
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, head)
	rows(w)
	_ = w.Flush() // into memory
	return section{lines: strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n"), head: 2, most: most}
}

// stateOf says whether the daemon serves.
func stateOf(o *operator.Overview) string {
	switch {
	case o.Draining:
		return "draining"
	case !o.Ready || !servesAny(o.Pools):
		return "NOT READY"
	case len(o.Warnings) > 0:
		return "serves, " + count(len(o.Warnings), "warning")
	}
	return "ready"
}

// lastMinute sums the last two spans of a pool.
func lastMinute(h *operator.PoolHour) string {
	var s metrics.Span
	for _, x := range h.Spans[max(0, len(h.Spans)-2):] {
		s.Arrived += x.Arrived
		s.Refused += x.Refused
		s.Failed += x.Failed
		s.Known += x.Known
		s.Cached += x.Cached
		s.Believed += x.Believed
		s.Output += x.Output
		if x.Streams > 0 {
			s.TTFT50, s.TTFT90 = x.TTFT50, x.TTFT90
		}
	}
	hits, believed := "-", "-"
	if s.Known > 0 {
		hits = fmt.Sprintf("%.0f%%", 100*float64(s.Cached)/float64(s.Known))
		believed = fmt.Sprintf("%.0f%%", 100*float64(s.Believed)/float64(s.Known))
	}
	return fmt.Sprintf("%s\t%d\t%d\t%d\t%s\t%s\t%s\t%s\t%d", h.Pool, s.Arrived, s.Refused, s.Failed, first(s.TTFT50),
		first(s.TTFT90), hits, believed, s.Output)
}

// first formats a time to first output in seconds, "-" if there was none.
func first(seconds float64) string {
	if seconds <= 0 {
		return "-"
	}
	return fmt.Sprintf("%.3fs", seconds)
}

// lineOf formats a decision as one line.
func lineOf(d *decisions.Decision) string {
	prompt, cached := d.PromptTokens, fmt.Sprintf("~%d", d.Believed)
	if d.Usage.Known {
		prompt = d.Usage.Prompt
	}
	if d.Usage.CachedKnown {
		cached = fmt.Sprint(d.Usage.Cached)
	}
	end, why := fmt.Sprint(d.Status), d.Reason
	switch {
	case d.Queued != nil && d.Waits:
		end, why = "waits", "for "+d.For()
	case d.Open:
		end = "open"
	case d.End != "":
		end += " " + d.End
	}
	return strings.Join([]string{
		d.At.Local().Format("15:04:05"), cmp.Or(d.Key, "-"), modelOf(d), cmp.Or(d.Worker, "-"), fmt.Sprint(prompt),
		cached, first(d.FirstByte.Seconds()), fmt.Sprintf("%.3fs", d.Seconds), end, why,
	}, "\t")
}
