package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/warmpath/warmpath/daemon/admin/operator"
)

func statusCommand() *cobra.Command {
	var admin adminFlags
	var asJSON bool
	c := &cobra.Command{
		Use:   "status",
		Short: "Say how a running daemon does: pools, workers, demand, the last reload; exit 1 if no pool can serve",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			var o operator.Overview
			raw, err := admin.get(c.Context(), "/api/v1/overview", &o)
			if err != nil {
				return err
			}
			out := c.OutOrStdout()
			if asJSON {
				_, err = fmt.Fprintln(out, strings.TrimSpace(string(raw)))
			} else {
				err = writeStatus(out, &o, allWorkers, 0)
			}
			if err == nil && (!o.Ready || !servesAny(o.Pools)) {
				err = errors.New("no pool can serve, or the daemon drains")
			}
			return err
		},
	}
	admin.flags(c)
	c.Flags().BoolVar(&asJSON, "json", false, "print the daemon's JSON")
	return c
}

// servesAny reports whether a pool can serve. /ready has a weaker rule, for the reason in docs/states.md.
func servesAny(pools []operator.PoolOverview) bool {
	return slices.ContainsFunc(pools, func(p operator.PoolOverview) bool { return p.WhyNot == "" || p.Panics })
}

// allWorkers is the limit of writeStatus that leaves out no worker.
const allWorkers = -1

// writeStatus prints all pools as tables for a screen of so many columns; 0 = any. Each table has at most limit
// workers: those in trouble go first where there are more.
func writeStatus(out io.Writer, o *operator.Overview, limit, columns int) error {
	state := "ready"
	switch {
	case o.Draining:
		state = "draining"
	case !o.Ready || !servesAny(o.Pools):
		state = "NOT READY"
	}
	fmt.Fprintf(out, "%s  warmpath %s, up %s, %d in flight, %s\n", state, o.Version, ago(o.Began, o.Now), o.InFlight,
		count(o.Clients, "connection"))
	writeReloads(out, o)
	for _, t := range o.Tiers {
		if strings.HasPrefix(t.State, "does not answer") {
			fmt.Fprintf(out, "STORE LOST: %s %s\n", t.Name, t.State)
		}
	}
	for i := range o.Pools {
		p := &o.Pools[i]
		fmt.Fprintf(out, "\npool %s  models %s, %s on %s, %d of %d up, demand %.1f s of prefill\n", p.Name,
			strings.Join(p.Models, " "), p.PoolState.Strategy, p.View, p.Up, len(p.Workers), p.Demand)
		if p.WhyNot != "" {
			fmt.Fprintf(out, "CANNOT SERVE: %s\n", p.WhyNot)
		}
		if p.Quarantine {
			fmt.Fprintf(out, "STRATEGY SET ASIDE: %s\n", p.Strategy.LastError)
		}
		for _, name := range slices.Sorted(maps.Keys(p.Aside)) {
			fmt.Fprintf(out, "CANARY %s SET ASIDE: %s\n", name, p.Aside[name])
		}
		workers := p.Workers
		if limit >= 0 && len(workers) > limit {
			workers = slices.Clone(workers)
			slices.SortStableFunc(workers, func(a, b operator.WorkerState) int { return cmp.Compare(trouble(&a), trouble(&b)) })
			workers = workers[:limit]
		}
		if err := writeWorkers(out, workers, o.Now, columns); err != nil {
			return err
		}
		if n := len(p.Workers) - len(workers); n > 0 {
			fmt.Fprintf(out, "... and %d more: warmpath status has all\n", n)
		}
	}
	return nil
}

// trouble is less for a worker that an operator must see first.
func trouble(s *operator.WorkerState) int {
	switch {
	case s.State != "up":
		return 0
	case whyOf(s) != "":
		return 1
	}
	return 2
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
func writeWaiting(out io.Writer, r *operator.Reload) {
	if len(r.Restart) > 0 {
		fmt.Fprintln(out, "at the next start only:", strings.Join(r.Restart, ", "))
	}
}

// writeWorkers prints a pool's workers as a table. What is wrong with one stands on a line of its own where the screen
// has no room for it beside the rest.
func writeWorkers(out io.Writer, workers []operator.WorkerState, now time.Time, columns int) error {
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "WORKER\tSTATE\tSINCE\tIN FLIGHT\tRUNNING\tWAITING\tQUEUE\tKV\tHITS\tSLOWNESS\tFIRST\t")
	whys := []string{"WHY"} // of each line
	for i := range workers {
		s := &workers[i]
		hits, first := "-", "-"
		if s.Hits >= 0 {
			hits = fmt.Sprintf("%.0f%%", 100*s.Hits)
		}
		if s.TTFT > 0 {
			first = fmt.Sprintf("%.2fs", s.TTFT)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%d\t%d\t%.2fs\t%.0f%%\t%s\t%.2f\t%s\t\n", s.ID, s.State, ago(s.Since, now),
			s.InFlight, s.Running, s.Waiting, s.Queue, 100*s.KVUsage, hits, s.Slowness, first)
		whys = append(whys, whyOf(s))
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

// whyOf lists what is wrong with a worker, each once.
func whyOf(s *operator.WorkerState) string {
	var why []string
	if s.Breaker != "closed" {
		why = append(why, "breaker "+s.Breaker)
	}
	if s.Why != "" {
		why = append(why, s.Why)
	}
	if s.LastError != "" && !s.ErrorOver && s.LastError != s.Why { // an ejected worker's Why is often its last error
		why = append(why, s.LastError)
	}
	if e := s.Events; e != nil && !e.Live {
		why = append(why, "KV events "+e.State)
	}
	return strings.Join(why, "; ")
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

// drainCommand drains a worker, or puts it back.
func drainCommand(use, short, method string) *cobra.Command {
	var d drain
	d.method = method
	c := &cobra.Command{
		Use:   use + " WORKER",
		Short: short,
		Args:  cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if d.wait < 0 {
				return wrongLine{fmt.Errorf("--wait %s is negative; write how long, as 30s", d.wait)}
			}
			return d.run(c.Context(), c.OutOrStdout(), args[0])
		},
	}
	d.admin.flags(c)
	c.Flags().StringVar(&d.pool, "pool", "", "the worker's pool; needed if two pools have a worker of that id")
	if method == http.MethodPost {
		c.Flags().DurationVar(&d.wait, "wait", 0, "wait so long for its requests to end; exit 1 if some are left")
	}
	return c
}

// drain holds the flags of the command.
type drain struct {
	admin  adminFlags
	pool   string
	method string
	wait   time.Duration
}

func (d *drain) run(ctx context.Context, out io.Writer, worker string) error {
	pool, err := d.find(ctx, worker)
	if err != nil {
		return err
	}
	path := "/api/v1/pools/" + url.PathEscape(pool) + "/workers/" + url.PathEscape(worker) + "/drain"
	raw, err := d.admin.call(ctx, d.method, path, nil)
	if err != nil {
		return err
	}
	if d.method == http.MethodDelete {
		return d.back(ctx, out, pool, worker)
	}
	fmt.Fprintf(out, "%s of pool %s gets no new requests until warmpath undrain %s, or the end of the daemon (an upgrade "+
		"keeps it out)\n", worker, pool, worker)
	if text := warningOf(raw); text != "" {
		fmt.Fprintln(out, "warning:", text)
	}
	return d.await(ctx, out, pool, worker)
}

// back says that the worker was put back, and for each of its ranks that is not up what still keeps requests away.
func (d *drain) back(ctx context.Context, out io.Writer, pool, worker string) error {
	var pools []operator.PoolState
	if _, err := d.admin.get(ctx, "/api/v1/pools", &pools); err != nil {
		return err
	}
	again := true
	for i := range pools {
		for k := range pools[i].Workers {
			w := &pools[i].Workers[k]
			if pools[i].Name != pool || w.ID != worker && w.Endpoint != worker || w.State == "up" {
				continue
			}
			again = false
			fmt.Fprintf(out, "%s of pool %s is put back, and gets requests once it is up; it is %s: %s\n", w.ID, pool, w.State,
				whyOf(w))
		}
	}
	if again {
		fmt.Fprintf(out, "%s of pool %s gets requests again\n", worker, pool)
	}
	return nil
}

// find returns the pool that has the worker.
func (d *drain) find(ctx context.Context, worker string) (string, error) {
	var pools []operator.PoolState
	if _, err := d.admin.get(ctx, "/api/v1/pools", &pools); err != nil {
		return "", err
	}
	var in, all, names []string
	for i := range pools {
		p := &pools[i]
		names = append(names, p.Name)
		if d.pool != "" && d.pool != p.Name {
			continue
		}
		for k := range p.Workers {
			all = append(all, p.Workers[k].ID)
		}
		named := func(w operator.WorkerState) bool { return w.ID == worker || w.Endpoint == worker }
		if slices.ContainsFunc(p.Workers, named) {
			in = append(in, p.Name)
		}
	}
	switch len(in) {
	case 0:
		return "", d.lacks(worker, all, names)
	case 1:
		return in[0], nil
	}
	return "", fmt.Errorf("worker %q is in the pools %s; say which by --pool", worker, strings.Join(in, ", "))
}

// lacks is the error that no pool, or not the one of --pool, has the worker.
func (d *drain) lacks(worker string, all, pools []string) error {
	where := ""
	if d.pool != "" {
		if !slices.Contains(pools, d.pool) {
			return fmt.Errorf("there is no pool %q; there are %s", d.pool, some(pools))
		}
		where = fmt.Sprintf(" in pool %q", d.pool)
	}
	if len(all) == 0 {
		return fmt.Errorf("there is no worker%s", where)
	}
	return fmt.Errorf("there is no worker %q%s; there are %s", worker, where, some(all))
}

// some lists the first names.
func some(names []string) string {
	const most = 20
	if len(names) > most {
		return fmt.Sprintf("%s and %d more: warmpath status lists them", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}

// await waits until the worker has no request any more.
func (d *drain) await(ctx context.Context, out io.Writer, pool, worker string) error {
	for end := time.Now().Add(d.wait); d.wait > 0; {
		left := 0
		var pools []operator.PoolState
		if _, err := d.admin.get(ctx, "/api/v1/pools", &pools); err != nil {
			return err
		}
		for i := range pools {
			for k := range pools[i].Workers {
				if w := &pools[i].Workers[k]; pools[i].Name == pool && (w.ID == worker || w.Endpoint == worker) {
					left += w.InFlight
				}
			}
		}
		if left == 0 {
			_, err := fmt.Fprintln(out, "it has no request any more")
			return err
		}
		if time.Now().After(end) {
			return fmt.Errorf("%s still at %s after %s", count(left, "request"), worker, d.wait)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
	}
	return nil
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
