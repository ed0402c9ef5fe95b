package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/warmpath/warmpath/daemon/admin/operator"
)

// workerAsk holds the flags of `warmpath worker`.
type workerAsk struct {
	pageFlags
	pool, id, role string
	labels         map[string]string
	weight         float64
	ttl            time.Duration
}

func workerCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "worker",
		Short: "Register workers at a running daemon, list them, and end registrations",
		Long: "Register workers at a running daemon, list them, and end registrations. The daemon needs " +
			"server.admin_token_file. A pool whose workers all register has workers = [] in the file.",
	}
	c.AddCommand(workerAddCommand(), workerRemoveCommand(), workerListCommand())
	return c
}

func workerAddCommand() *cobra.Command {
	w := workerAsk{pageFlags: pageFlags{adminFlags: adminFlags{patience: reloadTime}}}
	c := &cobra.Command{
		Use:     "add URL",
		Short:   "Register a worker, or renew its registration",
		Example: "  warmpath worker add http://10.0.0.7:8000 --token-file admin.token --id gpu-7 --ttl 30s",
		Args:    cobra.ExactArgs(1),
		RunE:    func(c *cobra.Command, args []string) error { return w.add(c.Context(), c.OutOrStdout(), args[0]) },
	}
	w.flags(c)
	w.poolFlag(c)
	f := c.Flags()
	f.StringVar(&w.id, "id", "", "its id; default: of the URL")
	f.StringVar(&w.role, "role", "", "prefill or decode, where the pool has disaggregation")
	f.StringToStringVar(&w.labels, "label", nil, "a label, as tier=rl; several: repeat it")
	f.Float64Var(&w.weight, "weight", 0, "its share beside the other workers; default 1")
	f.DurationVar(&w.ttl, "ttl", 0, "the registration ends unless it is renewed within this time; default: it stays")
	return c
}

func workerRemoveCommand() *cobra.Command {
	w := workerAsk{pageFlags: pageFlags{adminFlags: adminFlags{patience: reloadTime}}}
	c := &cobra.Command{
		Use:   "rm WORKER",
		Short: "End a registration: the worker gets no new requests, and those it has run to their end",
		Args:  cobra.ExactArgs(1),
		RunE:  func(c *cobra.Command, args []string) error { return w.remove(c.Context(), c.OutOrStdout(), args[0]) },
	}
	w.adminFlags.flags(c)
	w.poolFlag(c)
	return c
}

func workerListCommand() *cobra.Command {
	var w workerAsk
	c := &cobra.Command{
		Use:   "ls",
		Short: "List the workers of a pool, and where each comes from",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			path, err := w.path(c.Context())
			if err != nil {
				return err
			}
			var all []operator.PoolWorker
			return w.print(c, path, &all, func(out io.Writer) error { return writePoolWorkers(out, all, time.Now()) })
		},
	}
	w.flags(c)
	w.poolFlag(c)
	return c
}

func (w *workerAsk) poolFlag(c *cobra.Command) {
	c.Flags().StringVar(&w.pool, "pool", "", "the pool; needed if there are several")
}

// path returns the path of the pool's workers.
func (w *workerAsk) path(ctx context.Context) (string, error) {
	if w.pool == "" {
		var pools []operator.PoolState
		if _, err := w.get(ctx, "/api/v1/pools?limit=0", &pools); err != nil {
			return "", err
		}
		var names []string
		for i := range pools {
			names = append(names, pools[i].Name)
		}
		if len(names) != 1 {
			return "", fmt.Errorf("there are the pools %s; say which by --pool", some(names))
		}
		w.pool = names[0]
	}
	return "/api/v1/pools/" + url.PathEscape(w.pool) + "/workers", nil
}

func (w *workerAsk) add(ctx context.Context, out io.Writer, at string) error {
	path, err := w.path(ctx)
	if err != nil {
		return err
	}
	keys := map[string]any{"url": at}
	for name, value := range map[string]string{"id": w.id, "role": w.role} {
		if value != "" {
			keys[name] = value
		}
	}
	if len(w.labels) > 0 {
		keys["labels"] = w.labels
	}
	if w.weight != 0 {
		keys["weight"] = w.weight
	}
	if w.ttl != 0 {
		keys["ttl"] = w.ttl.String()
	}
	body, err := json.Marshal(keys)
	if err != nil {
		return err
	}
	raw, err := w.call(ctx, http.MethodPost, path, body)
	if err != nil {
		return err
	}
	var is operator.PoolWorker
	if err := json.Unmarshal(raw, &is); err != nil {
		return fmt.Errorf("what answers at %s is no warmpath admin listener: %w", w.at, err)
	}
	return w.printRaw(out, raw, func(out io.Writer) error {
		until := "until warmpath worker rm " + is.ID
		if is.TTL > 0 {
			until = fmt.Sprintf("for %s, unless it is renewed", w.ttl)
		}
		fmt.Fprintf(out, "%s is a worker of pool %s %s; it is %s\n", is.ID, is.Pool, until, cmp.Or(is.State, "starting"))
		if is.Warning != "" {
			fmt.Fprintln(out, "warning:", is.Warning)
		}
		return nil
	})
}

func (w *workerAsk) remove(ctx context.Context, out io.Writer, id string) error {
	path, err := w.path(ctx)
	if err != nil {
		return err
	}
	if _, err := w.call(ctx, http.MethodDelete, path+"/"+url.PathEscape(id), nil); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%s is no worker of pool %s any more; its open requests run to their end\n", id, w.pool)
	return err
}

// writePoolWorkers prints a row for each worker.
func writePoolWorkers(out io.Writer, all []operator.PoolWorker, now time.Time) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "WORKER\tSTATE\tFROM\tENDS IN\tURL")
	for i := range all {
		s := &all[i]
		ends := "-"
		if !s.Ends.IsZero() {
			ends = s.Ends.Sub(now).Round(time.Second).String()
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", s.ID, s.State, s.Origin, ends, s.URL)
	}
	return w.Flush()
}
