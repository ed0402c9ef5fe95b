package cli

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/warmpath/warmpath/daemon/admin/operator"
)

func shadowCommand() *cobra.Command {
	var page pageFlags
	c := &cobra.Command{
		Use:   "shadow",
		Short: "Compare the shadows of a running daemon with the strategies that serve",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			var pools []operator.PoolShadows
			return page.print(c, "/api/v1/shadows", &pools, func(out io.Writer) error { return writeShadows(out, pools) })
		},
	}
	page.flags(c)
	return c
}

// writeShadows prints a row for each shadow. Shares are of the requests that the shadow received; the figures of the
// serving strategy follow after the stroke.
func writeShadows(out io.Writer, pools []operator.PoolShadows) error {
	if len(pools) == 0 {
		_, err := fmt.Fprintln(out, "no pool has a shadow; add [[pools.shadow]] with a strategy")
		return err
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "POOL\tSHADOW\tOF\tSEEN\tAGREES\tDECLINES\tFAILS\tREJECTS\tHELD TOKENS\tFUEL\tUS\tNOT SEEN")
	for _, p := range pools {
		for _, s := range p.Shadows {
			share := func(n uint64) string { return fmt.Sprintf("%.1f %%", 100*per(n, s.Seen)) }
			pair := func(own, live uint64, unit float64) string {
				return fmt.Sprintf("%.1f | %.1f", per(own, s.Seen)/unit, per(live, s.Seen)/unit)
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%d\n", p.Pool, s.Strategy, p.Serving, s.Seen,
				share(s.Agreed), share(s.Declined), share(s.Failed), share(s.Rejected), pair(s.Held, s.LiveHeld, 1),
				pair(s.Fuel, s.LiveFuel, 1), pair(s.Nanos, s.LiveNanos, 1000), p.Dropped)
		}
	}
	return w.Flush()
}

// per returns n divided by the requests.
func per(n, requests uint64) float64 { return float64(n) / float64(max(1, requests)) }
