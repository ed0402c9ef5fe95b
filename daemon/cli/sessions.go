package cli

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/warmpath/warmpath/daemon/admin/operator"
)

func sessionsCommand() *cobra.Command {
	var q sessionsQuery
	c := &cobra.Command{
		Use:   "sessions",
		Short: "List the live sessions of a running daemon by worker: fingerprints, never ids",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			pools, raw, err := q.fetch(c.Context())
			if err != nil {
				return err
			}
			return q.printRaw(c.OutOrStdout(), raw, func(out io.Writer) error { return writeSessions(out, pools, time.Now()) })
		},
	}
	q.flags(c)
	f := c.Flags()
	f.StringVar(&q.worker, "worker", "", "only this worker's id")
	f.IntVar(&q.limit, "limit", 100, "list at most so many sessions of a pool; 0 = only counts")
	return c
}

// sessionsQuery holds the flags of the command.
type sessionsQuery struct {
	pageFlags
	worker string
	limit  int
}

// fetch reads the daemon's list.
func (q *sessionsQuery) fetch(ctx context.Context) (pools []operator.PoolSessions, raw []byte, err error) {
	query := url.Values{"worker": {q.worker}, "limit": {strconv.Itoa(q.limit)}}
	raw, err = q.get(ctx, "/api/v1/sessions?"+query.Encode(), &pools)
	if err == nil && q.worker != "" && !slices.ContainsFunc(pools, someAt) {
		err = q.known(ctx)
	}
	return pools, raw, err
}

// someAt reports whether a pool has sessions.
func someAt(p operator.PoolSessions) bool { return len(p.Workers) > 0 }

// known returns an error unless a pool has the worker, at which there are no sessions.
func (q *sessionsQuery) known(ctx context.Context) error {
	_, err := (&drain{admin: q.adminFlags}).find(ctx, q.worker)
	return err
}

// writeSessions prints counts and list as tables.
func writeSessions(out io.Writer, pools []operator.PoolSessions, now time.Time) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "POOL\tWORKER\tOPENED\tKEYS\tRESPONSES")
	for _, p := range pools {
		for _, c := range p.Workers {
			fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d\n", p.Pool, c.Worker, c.Opened, c.Keys, c.Responses)
		}
	}
	for _, p := range pools {
		if len(p.List) == 0 {
			continue
		}
		fmt.Fprintln(w, "\nPOOL\tSESSION\tKIND\tWORKER\tAGE\tENDS IN")
		for _, s := range p.List {
			ends := s.Expires
			if ends.IsZero() {
				ends = s.Forgotten
			}
			left := "-"
			if !ends.IsZero() {
				left = ends.Sub(now).Round(time.Second).String()
			}
			age := now.Sub(s.Created).Round(time.Second)
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", p.Pool, s.Fingerprint, s.Kind, s.Worker, age, left)
		}
		if p.Cut {
			fmt.Fprintln(w, "... and more: raise --limit")
		}
	}
	return w.Flush()
}
