package replay

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
)

// Report is what a replay measured: a Result for each model, in order.
type Report struct {
	Trace   string
	Speed   float64
	Results []Result
}

// WriteJSON writes one JSON object a line, one for each model.
func (r Report) WriteJSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	for i := range r.Results {
		if err := enc.Encode(&r.Results[i]); err != nil {
			return err
		}
	}
	return nil
}

// WriteText writes a table with a column for each model, and notes on what a
// reader must know before believing it.
func (r Report) WriteText(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', tabwriter.AlignRight)
	for _, row := range textRows {
		fmt.Fprint(t, row.name)
		for i := range r.Results {
			fmt.Fprint(t, "\t", row.value(&r.Results[i]))
		}
		fmt.Fprintln(t, "\t")
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for i := range r.Results {
		for _, note := range r.Results[i].notes() {
			if _, err := fmt.Fprintf(w, "%s: %s\n", r.Results[i].Model, note); err != nil {
				return err
			}
		}
	}
	return nil
}

// notes returns what takes away from the figures.
func (res *Result) notes() []string {
	var out []string
	note := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	if len(res.Errors) > 0 {
		var kinds []string
		for _, kind := range slices.Sorted(maps.Keys(res.Errors)) {
			kinds = append(kinds, fmt.Sprintf("%d %s", res.Errors[kind], kind))
		}
		note("errors: %s", strings.Join(kinds, ", "))
	}
	if res.FirstError != "" {
		note("first error: %s", res.FirstError)
	}
	if res.Held > 0 {
		note("%d requests waited for the bound in flight, and left up to %.1f s late: "+
			"the times are understated; raise the bound", res.Held, res.LateSecondsMax)
	}
	if res.NoUsage > 0 {
		note("%d answers reported no usage and are in no hit rate", res.NoUsage)
	}
	if d := res.PromptTokens - res.TraceTokens; d != 0 {
		note("the workers counted %d prompt tokens where the trace has %d: their tokenizer is another one",
			res.PromptTokens, res.TraceTokens)
	}
	if res.Answered > 0 && res.Workers == 0 {
		note("the daemon named no workers in X-Warmpath-Worker: turn its explain on for the busiest over mean")
	}
	return out
}
