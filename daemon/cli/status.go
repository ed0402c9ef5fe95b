package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/warmpath/warmpath/daemon/admin/metrics"
	"github.com/warmpath/warmpath/daemon/admin/operator"
)

func statusCommand() *cobra.Command {
	var page pageFlags
	c := &cobra.Command{
		Use:   "status",
		Short: "Say how a running daemon does: pools, workers, demand, the last reload; exit 1 if no pool can serve",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			var o operator.Overview
			path := "/api/v1/overview"
			if terminal(bare(c.OutOrStdout())) && !page.asJSON {
				path += fmt.Sprint("?limit=", someWorkers)
			}
			err := page.print(c, path, &o, func(out io.Writer) error { return printStatus(out, &o) })
			if err == nil {
				err = notServing(&o)
			}
			return err
		},
	}
	page.flags(c)
	return c
}

// someWorkers bounds the workers that a terminal gets, those in trouble first.
const someWorkers = 100

// printStatus prints the status. On a terminal, late times are red.
func printStatus(out io.Writer, o *operator.Overview) error {
	if !terminal(bare(out)) {
		return writeStatus(out, o)
	}
	var page bytes.Buffer
	if err := writeStatus(&page, o); err != nil {
		return err
	}
	_, err := bare(out).Write(redden(harmless(nil, page.Bytes())))
	return err
}

// servesAny reports whether a pool can serve. /ready has a weaker rule, for the reason in docs/states.md.
func servesAny(pools []operator.PoolOverview) bool {
	return slices.ContainsFunc(pools, func(p operator.PoolOverview) bool { return p.WhyNot == "" || p.Panics })
}

// notServing returns an error for scripts if the daemon drains or a pool cannot serve.
func notServing(o *operator.Overview) error {
	if !o.Ready || !servesAny(o.Pools) {
		return errors.New("no pool can serve, or the daemon drains")
	}
	if dead := deadPools(o.Pools); len(dead) > 0 {
		return fmt.Errorf("a pool cannot serve: %s", some(dead))
	}
	return nil
}

// deadPools lists the pools that cannot serve.
func deadPools(pools []operator.PoolOverview) (names []string) {
	for i := range pools {
		if p := &pools[i]; p.WhyNot != "" && !p.Panics {
			names = append(names, p.Name)
		}
	}
	return names
}

// writeStatus prints what is wrong, and all pools as tables.
func writeStatus(out io.Writer, o *operator.Overview) error {
	state := "ready"
	switch {
	case o.Draining:
		state = "draining"
	case !o.Ready || !servesAny(o.Pools):
		state = "NOT READY"
	case len(deadPools(o.Pools)) > 0:
		state = "POOL DOWN"
	}
	fmt.Fprintf(out, "%s  warmpath %s, up %s, %d in flight, %s\n", state, o.Version, ago(o.Began, o.Now), o.InFlight,
		count(o.Clients, "connection"))
	for _, w := range o.Warnings {
		fmt.Fprintf(out, "WARNING %s: %s; %s\n", w.Title, w.Text, w.Command)
	}
	writeReloads(out, o)
	for i := range o.Pools {
		p := &o.Pools[i]
		fmt.Fprintf(out, "\npool %s  models %s, %s%s on %s, %d of %d up%s%s, demand %.1f s of prefill%s\n", p.Name,
			strings.Join(p.Models, " "), p.PoolState.Strategy, canariesOf(p), p.View, p.Up, p.Total-p.States[operator.Outside],
			onTrial(p), joined(p), p.Demand, wantedBy(p.Up, p.Wanted))
		if len(p.Aliases) > 0 {
			fmt.Fprintf(out, "aliases: %s\n", some(p.Aliases))
		}
		for _, r := range p.Roles {
			fmt.Fprintf(out, "role %s: %d of %d up, %.1f in use, demand %.1f s of prefill%s\n", r.Role, r.Up, r.Workers, r.Busy,
				r.Demand, wantedBy(r.Up, r.Wanted))
		}
		if p.Subset != nil {
			fmt.Fprintf(out, "subset: %s\n", p.Subset.Text)
		}
		if p.Moves != "" {
			fmt.Fprintf(out, "moves: %s\n", p.Moves)
		}
		if p.Rests != "" {
			state := "AT ZERO"
			if slices.ContainsFunc(p.Workers, func(w operator.WorkerState) bool { return w.State == "paused" }) {
				state = "PAUSED"
			}
			fmt.Fprintf(out, "%s: no worker is up, and requests wait for one, %s at most\n", state, p.Rests)
		}
		writeQueue(out, p)
		for _, entry := range slices.Sorted(maps.Keys(p.Strategy.Refused)) {
			fmt.Fprintf(out, "STRATEGY ASKS IN VAIN: %d calls need allow = [%q]\n", p.Strategy.Refused[entry], entry)
		}
		if err := writeWorkers(out, &p.PoolState, o.Now, 0); err != nil {
			return err
		}
		if more := p.Total - len(p.Workers); more > 0 {
			fmt.Fprintf(out, "and %s: warmpath status | less lists all\n", count(more, "other worker"))
		}
	}
	return nil
}

// joined says how many workers registered themselves.
func joined(p *operator.PoolOverview) string {
	if p.Joined == 0 {
		return ""
	}
	return fmt.Sprintf(", %d registered", p.Joined)
}

// canariesOf names the canaries behind the pool's own strategy.
func canariesOf(p *operator.PoolOverview) string {
	if len(p.Canaries) == 0 {
		return ""
	}
	return ", canary " + strings.Join(p.Canaries, ", canary ")
}

// onTrial says how many workers have failed, and get a request at a time until one succeeds: they may count as up.
func onTrial(p *operator.PoolOverview) string {
	n := 0
	for i := range p.Workers {
		if w := &p.Workers[i]; w.State == "ejected" && w.Breaker == "half-open" {
			n++
		}
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(", %d of them on trial after failures", n)
}

// writeQueue prints how many requests of a pool wait in the router, whose they are and what for.
func writeQueue(out io.Writer, p *operator.PoolOverview) {
	if p.Queue == nil {
		return
	}
	whose := []string{}
	for _, f := range p.Queue.Flows {
		whose = append(whose, fmt.Sprintf("%s %d (%s)", f.Flow, f.Requests, p.WaitsFor(f.Limit)))
	}
	fmt.Fprintf(out, "WAITS IN THE ROUTER: %d of %d: %s\n", p.Queue.Waiting, p.Queue.Most, some(whose))
}

// wantedBy says how many workers are wanted where requests are refused, or wait as none is up.
func wantedBy(up, wanted int) string {
	switch {
	case wanted <= up:
		return ""
	case up == 0:
		return fmt.Sprintf(", needs %s up", count(wanted, "worker"))
	}
	return fmt.Sprintf(", would need %s to refuse nothing", count(wanted, "worker"))
}

// writeReloads prints when the file was read, what changed last, and which keys wait for a restart.
func writeReloads(out io.Writer, o *operator.Overview) {
	if r := o.Reload; r.OK {
		fmt.Fprintf(out, "configuration read %s ago\n", ago(r.At, o.Now))
	} else {
		fmt.Fprintf(out, "CONFIGURATION REFUSED %s ago, the one before is in force: %s\n", ago(r.At, o.Now), r.Error)
	}
	if o.Change != nil {
		fmt.Fprintf(out, "last change taken %s ago: %s\n", ago(o.Change.At, o.Now), strings.Join(o.Change.Changed, ", "))
	}
	writeWaiting(out, &o.Reload)
}

// writeWaiting prints the keys that wait for a restart.
func writeWaiting(out io.Writer, r *metrics.Reload) {
	if len(r.Restart) > 0 {
		fmt.Fprintln(out, "at the next start only:", strings.Join(r.Restart, ", "))
	}
}

// writeWorkers prints a pool's workers as a table. If the line has no room for what is wrong with a worker, that gets
// a line of its own.
func writeWorkers(out io.Writer, p *operator.PoolState, now time.Time, columns int) error {
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "WORKER\tSTATE\tSINCE\tIN FLIGHT\tRUNNING\tWAITING\tQUEUE\tKV\tHITS\tSLOWNESS\tFIRST\tTPOT\t")
	whys := []string{"WHY"} // of each line
	for i := range p.Workers {
		s := &p.Workers[i]
		m := p.Medians[s.Labels["role"]]
		hits, first := "-", "-"
		if s.Hits >= 0 {
			hits = fmt.Sprintf("%.0f%%", 100*s.Hits)
		}
		if s.TTFT > 0 {
			first = fmt.Sprintf("%.2fs", s.TTFT)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%d\t%d\t%.2fs\t%.0f%%\t%s\t%.2f\t%s\t%s\t\n", named(s), s.State, ago(s.Since, now),
			s.InFlight, s.Running, s.Waiting, s.Queue, 100*s.KVUsage, hits, s.Slowness, mark(first, s.TTFT, m.First),
			mark(perToken(s.TPOT), s.TPOT, m.PerToken))
		whys = append(whys, s.WhyOf())
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for i, line := range strings.Split(table.String(), "\n")[:len(whys)] {
		if i > 0 && columns > 0 && utf8.RuneCountInString(line+whys[i]) > columns && whys[i] != "" {
			line = strings.TrimRight(line, " ") + "\n  "
		}
		if _, err := fmt.Fprintln(out, strings.TrimRight(line+whys[i], " ")); err != nil {
			return err
		}
	}
	return nil
}

// named is the id of a worker, with its role if it has one.
func named(s *operator.WorkerState) string {
	if role := s.Labels["role"]; role != "" {
		return s.ID + " (" + role + ")"
	}
	return s.ID
}

// some lists the first names.
func some(names []string) string {
	const most = 20
	if len(names) > most {
		return fmt.Sprintf("%s and %d more: warmpath status lists them", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}

// count writes a number of things.
func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// ago formats a time in the past in few characters.
func ago(at, now time.Time) string {
	d := max(0, now.Sub(at))
	switch {
	case d < 100*time.Second:
		return fmt.Sprintf("%.0fs", d.Seconds())
	case d < 100*time.Minute:
		return fmt.Sprintf("%.0fm", d.Minutes())
	case d < 48*time.Hour:
		return fmt.Sprintf("%.1fh", d.Hours())
	}
	return fmt.Sprintf("%.0fd", d.Hours()/24)
}

func reloadCommand() *cobra.Command {
	admin := adminFlags{patience: reloadTime}
	c := &cobra.Command{
		Use:   "reload",
		Short: "Have a running daemon read its file again: exit 1 and the reason if the file is refused",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			r, err := admin.reload(c.Context())
			if err != nil {
				return err
			}
			out := c.OutOrStdout()
			if len(r.Kept) > 0 {
				return errors.New("reloaded, but: " + strings.Join(r.Kept, "\n"))
			}
			if len(r.Changed) > 0 {
				fmt.Fprintln(out, "reloaded; changed:", strings.Join(r.Changed, ", "))
			} else {
				fmt.Fprintln(out, "reloaded; nothing has changed"+admin.lastChange(c.Context()))
			}
			writeWaiting(out, &r)
			return nil
		},
	}
	admin.flags(c)
	return c
}
