package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/warmpath/warmpath/daemon/admin/decisions"
)

func whyCommand() *cobra.Command {
	var w why
	c := &cobra.Command{
		Use:   "why ID",
		Short: "Explain a request by its X-Request-Id: who served it, why, and what the others would have cost",
		Long: "Explain a request by its X-Request-Id: who served it, why, what each other worker would have cost, and " +
			"who was skipped.\n\nThe daemon keeps the last requests (server.decisions_bytes). For older ones, or while it " +
			"does not run, give its access log by --log: lines have the candidates where server.explain_log picked the " +
			"request.",
		Example: "  warmpath why 8f14e45fceea167a5a36dedd4bea2543\n  warmpath why last\n" +
			"  warmpath why 8f14e45fceea167a5a36dedd4bea2543 --log /var/log/warmpath/access.log",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return errors.New("give one request: its X-Request-Id, or last")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			d, err := w.find(c.Context(), args[0])
			if err != nil {
				return err
			}
			if w.asJSON {
				return json.NewEncoder(c.OutOrStdout()).Encode(d)
			}
			return explain(c.OutOrStdout(), d)
		},
	}
	w.admin.flags(c)
	c.Flags().StringVar(&w.log, "log", "", "look into this access log instead of asking the daemon")
	c.Flags().BoolVar(&w.asJSON, "json", false, "print the decision as JSON")
	return c
}

// why holds the flags of the command.
type why struct {
	admin  adminFlags
	log    string
	asJSON bool
}

// find returns the decision from the daemon or from its log. The id "last" means the last request.
func (w *why) find(ctx context.Context, id string) (*decisions.Decision, error) {
	if w.log != "" {
		f, err := os.Open(w.log)
		if err != nil {
			return nil, fmt.Errorf("--log cannot be read: %w", err)
		}
		defer f.Close()
		return findInLog(f, id)
	}
	if id == "last" {
		var list []decisions.Decision
		_, err := w.admin.get(ctx, "/api/v1/decisions?limit=1", &list)
		if err == nil && len(list) == 0 {
			err = errors.New("no request has come yet")
		}
		if err != nil {
			return nil, err
		}
		return &list[0], nil
	}
	raw, err := w.admin.call(ctx, http.MethodGet, "/api/v1/decisions/"+url.PathEscape(id), nil)
	if err != nil {
		return nil, err
	}
	d := new(decisions.Decision)
	return d, json.Unmarshal(raw, d)
}

// logLine has the fields of an access log line that differ from a decision.
type logLine struct {
	decisions.Decision
	Time   time.Time `json:"time"`
	First  float64   `json:"ttft_seconds"`
	Wait   float64   `json:"queue_seconds"`
	Held   float64   `json:"waited_seconds"` // in the router
	Blocks int32     `json:"blocks"`
	Prompt *int      `json:"prompt_tokens"` // the engine's
	Cached *int      `json:"cached_tokens"`
	Output int       `json:"output_tokens"`

	Prefiller   string  `json:"prefiller"`
	Prefill     string  `json:"prefill"`
	PrefillWhy  string  `json:"prefill_why"`
	PrefillTook float64 `json:"prefill_seconds"`

	Tried []struct {
		Worker, Reason string
		After          float64 `json:"after_seconds"`
	}
}

// maxLine bounds a line of an access log: one with 64 candidates has some 40 KB.
const maxLine = 1 << 20

// findInLog returns the last line with that id.
func findInLog(log io.Reader, id string) (*decisions.Decision, error) {
	var last []byte
	quoted, _ := json.Marshal(id)
	want := append([]byte(`"id":`), quoted...)
	lines := bufio.NewScanner(log)
	lines.Buffer(make([]byte, 64<<10), maxLine)
	for lines.Scan() {
		if id == "last" || bytes.Contains(lines.Bytes(), want) {
			last = append(last[:0], lines.Bytes()...)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("--log cannot be read: %w", err)
	}
	if last == nil {
		return nil, errors.New("no line of the log has that id")
	}
	var l logLine
	if err := json.Unmarshal(last, &l); err != nil {
		return nil, fmt.Errorf("the line of that id is no line of an access log: %w", err)
	}
	d := l.Decision
	d.At = l.Time.Add(-time.Duration(l.Seconds * float64(time.Second)))
	d.FirstByte, d.Queue, d.PromptBlocks = inSeconds(l.First), inSeconds(l.Wait), l.Blocks
	if d.Queued != nil {
		d.Waited = inSeconds(l.Held)
	}
	for _, a := range l.Tried {
		d.Tried(a.Worker, a.Reason, inSeconds(a.After))
	}
	if l.Prefill != "" {
		d.Prefilled(l.Prefiller, l.Prefill, l.PrefillWhy, inSeconds(l.PrefillTook))
	}
	if l.Prompt != nil {
		d.PromptTokens, d.Usage.Prompt, d.Usage.Known, d.Usage.Output = *l.Prompt, *l.Prompt, true, l.Output
	}
	if l.Cached != nil {
		d.Usage.Cached, d.Usage.CachedKnown = *l.Cached, true
	}
	return &d, nil
}

func inSeconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// explain prints a decision for a person.
func explain(out io.Writer, d *decisions.Decision) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	line := func(what, format string, args ...any) {
		fmt.Fprintf(w, "%s\t"+format+"\n", append([]any{what}, args...)...)
	}
	line("request", "%s", d.ID)
	if d.Trace != "" {
		line("trace", "%s", d.Trace)
	}
	line("came", "%s  %s %s%s", d.At.Local().Format("2006-01-02 15:04:05.000"), d.Method, d.Path, from(d))
	line("model", "%s%s", modelOf(d), inPool(d))
	if d.Named != nil {
		line("session", "%s", identityOf(d))
	}
	if q := d.Queued; q != nil && (q.Waits || q.Waited >= time.Millisecond || d.Worker == "" && !d.Open) {
		line("waited", "%s", waitOf(d))
	}
	if left := d.Filtered(); left != "" {
		line("filters", "%s", left)
	}
	line("decision", "%s", decision(d))
	if d.LeftOut > 0 {
		n := len(d.Candidates) + int(d.More)
		line("candidates", "%d of %d workers: those that hold the prompt, and those with the least load", n, n+int(d.LeftOut))
	}
	if d.PromptTokens > 0 || d.Usage.Known {
		line("prompt", "%s", promptOf(d))
	}
	if d.PairName() != "" && (d.Split == nil || !d.Split.Named) {
		line("pair", "the strategy named %s for the prompt", d.Pair)
	}
	if said := d.Wishes(); said != "" {
		line("cache", "the strategy asked: %s", said)
	}
	if d.Split != nil {
		line("prefill", "%s", prefillOf(d))
	}
	tried := "tried before"
	if d.Worker == "" {
		tried = "tried"
	}
	for _, a := range d.Attempts {
		line(tried, "%s: %s after %s", a.Worker, a.Reason, a.After.Round(time.Millisecond))
	}
	line("answer", "%s", answerOf(d))
	if weights := d.MadeWith(); weights != "" {
		line("weights", "version %s", weights)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if len(d.Candidates) == 0 {
		if d.Strategy != "" {
			_, err := fmt.Fprintln(out, `
The candidates are not in this line: server.explain_log = "all" writes them, the running daemon keeps them.`)
			return err
		}
		return nil
	}
	fmt.Fprintln(out)
	writeCandidates(w, d)
	return w.Flush()
}

func from(d *decisions.Decision) string {
	s := ""
	if d.Client != "" {
		s += ", from " + d.Client
	}
	if d.Key != "" {
		s += ", key " + d.Key
	}
	return s
}

func inPool(d *decisions.Decision) string {
	if d.Pool == "" {
		return ""
	}
	return ", pool " + d.Pool
}

// unread lists the ends of requests that were refused by their header, or before the whole body arrived.
var unread = []string{"invalid_api_key", "overloaded", "workers_full", "body_too_large", "headers_too_large",
	"request_timeout", "unsupported_encoding", "invalid_encoding", "body_unpacks_too_large", "unpacking_full",
	"overflow_full"}

// modelOf formats the model that a request named.
func modelOf(d *decisions.Decision) string {
	switch {
	case d.AliasName() != "" && d.Fell != "":
		return d.Model + ", asked for as " + d.AliasName() + ", as its fallback (" + d.Fell + ")"
	case d.AliasName() != "":
		return d.Model + ", asked for as " + d.AliasName()
	case d.Model != "":
		return d.Model
	case slices.Contains(unread, d.End):
		return "not read"
	}
	return "none named"
}

// decision formats which worker served the request and why.
func decision(d *decisions.Decision) string {
	switch {
	case d.Queued != nil && d.Waits:
		return "none yet"
	case d.Worker == "" && d.Strategy == "" && d.End != "":
		return "none: refused with " + d.End
	case d.Worker == "" && d.Strategy == "":
		return "none: the router answered itself"
	case d.Worker == "" && d.Open:
		return "under way, by " + d.Strategy + ": " + d.Reason
	case d.Worker == "":
		return "nobody answered; chosen by " + d.Strategy + ": " + d.Reason
	}
	s := d.Worker + ", by " + d.Strategy
	if d.Reason != "" {
		s += ": " + d.Reason
	}
	if d.Fallback != "" {
		s += " (the host's fallback, as the strategy failed or declined: " + d.Fallback + ")"
	}
	if d.Session != "" {
		s += ", session by " + d.Session
	}
	return s
}

// identityOf formats the session that the request names, and the number of its turn.
func identityOf(d *decisions.Decision) string {
	s := d.Identity
	if d.NamedBy != "" {
		s += ", named by " + d.NamedBy
	}
	if d.Turn > 0 {
		s += fmt.Sprintf(", turn %d", d.Turn)
	}
	if d.Parent != "" {
		s += ", begun by " + d.Parent
	}
	return s
}

// waitOf formats how long the request waited in the router for a worker with room.
func waitOf(d *decisions.Decision) string {
	cut := ""
	if d.Cut != 0 {
		cut = fmt.Sprintf(" (class %d is cut to %d by [[keys]] priority)", d.Cut, d.Priority)
	}
	behind, so := "nobody was before it", ""
	if d.Waits {
		so, behind = " so far", "nobody is before it"
	}
	if d.Behind > 0 {
		behind = "behind some " + count(d.Behind, "other")
	}
	if !d.Waits && d.Waited < time.Millisecond {
		return fmt.Sprintf("not at all: it was turned away at once, %s, with priority %d%s", behind, d.Priority, cut)
	}
	return fmt.Sprintf("%s%s in the router's queue, for %s, %s, with priority %d%s", d.Waited.Round(time.Millisecond), so,
		d.For(), behind, d.Priority, cut)
}

// prefillOf formats which prefiller computed the prompt for the worker that answered.
func prefillOf(d *decisions.Decision) string {
	s := d.Split
	if d.IsLong() {
		return "where it is answered: the body is above server.buffer_body_bytes, and such ones are not split"
	}
	why := ""
	switch {
	case s.Result == "not_needed":
		return "where it is answered: " + s.Why
	case s.Result == "begun" && d.Open:
		return "at " + s.Prefiller + ", under way"
	}
	if s.Why != "" {
		why = " (" + s.Why + ")"
	}
	if s.Result == "no_prefiller" {
		return "where it is answered: no prefiller took it" + why
	}
	if s.Prefiller == "" {
		return fmt.Sprintf("by no prefiller: %s%s after %s", s.Result, why, s.Took.Round(time.Millisecond))
	}
	by := ""
	if s.Named {
		by = ", which the strategy named"
	}
	return fmt.Sprintf("at %s%s: %s%s after %s", s.Prefiller, by, s.Result, why, s.Took.Round(time.Millisecond))
}

// promptOf formats how much of the prompt was expected in the cache, and how much was there.
func promptOf(d *decisions.Decision) string {
	s := fmt.Sprintf("%d tokens, %d believed cached there", d.PromptTokens, d.Believed)
	if d.Split != nil && d.Split.Result == "done" { // the decoder is handed all of it, whatever it has
		s = fmt.Sprintf("%d tokens, handed over by %s", d.PromptTokens, d.Split.Prefiller)
	}
	if d.Usage.CachedKnown {
		s += fmt.Sprintf(", %d of %d by the engine's own count", d.Usage.Cached, d.Usage.Prompt)
	}
	if d.Aside != nil && d.Hint != "" {
		s += ", told to copy " + d.Hint
	}
	return s
}

// answerOf formats how the answer ended.
func answerOf(d *decisions.Decision) string {
	if d.Open {
		return fmt.Sprintf("under way for %s", inSeconds(d.Seconds).Round(time.Millisecond))
	}
	s := fmt.Sprintf("%d after %.3fs", d.Status, d.Seconds)
	if d.FirstByte > 0 && d.Stream {
		s += fmt.Sprintf(", first output after %.3fs", d.FirstByte.Seconds())
	}
	if d.Usage.Known {
		s += fmt.Sprintf(", %d tokens", d.Usage.Output)
	}
	if d.End != "" {
		s += ", ended: " + d.End
	}
	return s
}

// writeCandidates prints the table of the workers, in the order of the choice.
func writeCandidates(w io.Writer, d *decisions.Decision) {
	fmt.Fprintln(w, "WORKER\tCOST MS\tQUEUE MS\tPREFILL MS\tEVICTION MS\tIN FLIGHT\tBLOCKS HELD\tSLOWNESS\tWHY NOT")
	best := d.Candidates[0].Cost
	for i := range d.Candidates {
		c := &d.Candidates[i]
		if c.Skipped != "" && (c.State != "up" || c.Prefill == 0) { // its cost was not computed
			fmt.Fprintf(w, "%s\t-\t-\t-\t-\t%d\t-\t-\t%s\n", c.Worker, c.InFlight, c.Skipped)
			continue
		}
		blocks := fmt.Sprintf("%d", c.GPU)
		if c.L1+c.L2 > 0 {
			blocks += fmt.Sprintf("+%d+%d", c.L1, c.L2)
		}
		reason := c.Skipped
		if reason == "" && i > 0 {
			reason = fmt.Sprintf("%+.1f ms", 1000*(c.Cost-best))
		}
		fmt.Fprintf(w, "%s\t%.1f\t%.1f\t%.1f\t%.1f\t%d\t%s of %d\t%.2f\t%s\n", c.Worker, 1000*c.Cost, 1000*c.Wait,
			1000*c.Prefill, 1000*c.Eviction, c.InFlight, blocks, d.PromptBlocks, c.Slowness, reason)
	}
	if d.More > 0 {
		fmt.Fprintf(w, "and %d more\n", d.More)
	}
}
