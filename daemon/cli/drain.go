package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/warmpath/warmpath/daemon/admin/operator"
)

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
			if d.handOver && d.within <= 0 {
				return wrongLine{fmt.Errorf("--within %s leaves no time to move conversations; write how long, as 60s", d.within)}
			}
			return d.run(c.Context(), c.OutOrStdout(), args[0])
		},
	}
	d.admin.flags(c)
	c.Flags().StringVar(&d.pool, "pool", "", "the worker's pool; needed if two pools have a worker of that id")
	if method == http.MethodPost {
		c.Flags().BoolVar(&d.handOver, "hand-over", false,
			"first move its conversations to other workers, so that their next turns find their prompts cached, and its "+
				"streams, if the pool has continue")
		c.Flags().DurationVar(&d.within, "within", time.Minute, "with --hand-over: for so long at most")
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

	handOver bool
	within   time.Duration // of handOver
}

func (d *drain) run(ctx context.Context, out io.Writer, worker string) error {
	pool, err := d.find(ctx, worker)
	if err != nil {
		return err
	}
	path := "/api/v1/pools/" + url.PathEscape(pool) + "/workers/" + url.PathEscape(worker) + "/drain"
	if d.handOver {
		path += "?hand_over=" + d.within.String()
	}
	raw, err := d.admin.call(ctx, d.method, path, nil)
	if err != nil {
		return err
	}
	if text := warningOf(raw); text != "" {
		fmt.Fprintln(out, "warning:", text)
	}
	if d.method == http.MethodDelete {
		return d.back(ctx, out, pool, worker)
	}
	fmt.Fprintf(out, "%s of pool %s gets no new requests until warmpath undrain %s, or the end of the daemon (an upgrade "+
		"keeps it out)\n", worker, pool, worker)
	var moves struct{ Moves, Streams int }
	if d.handOver && json.Unmarshal(raw, &moves) == nil {
		fmt.Fprintf(out, "%d conversations and %d requests move to other workers within %s; until then each goes on there\n",
			moves.Moves, moves.Streams, d.within)
	}
	w := drained{admin: &d.admin, wait: d.wait, pool: pool, worker: worker}
	return w.await(ctx, out)
}

// back reports that the worker was put back. For each rank that is not up it says why requests still do not go there.
func (d *drain) back(ctx context.Context, out io.Writer, pool, worker string) error {
	var pools []operator.PoolState
	if _, err := d.admin.get(ctx, "/api/v1/pools", &pools); err != nil {
		return err
	}
	again := true
	for i := range pools {
		for k := range pools[i].Workers {
			w := &pools[i].Workers[k]
			if pools[i].Name != pool || w.ID != worker && w.Endpoint != worker || w.State == "up" || w.State == "full" {
				continue
			}
			again = false
			fmt.Fprintf(out, "%s of pool %s is put back, and gets requests once it is up; it is %s: %s\n", w.ID, pool, w.State,
				w.WhyOf())
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

// lacks returns the error for a worker that is in no pool, or not in the one of --pool.
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
