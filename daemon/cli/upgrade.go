package cli

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/warmpath/warmpath/daemon/admin/operator"
	"github.com/warmpath/warmpath/daemon/admin/unit"
)

func upgradeCommand() *cobra.Command {
	var admin adminFlags
	c := &cobra.Command{
		Use:   "upgrade",
		Short: "Have a running daemon hand its sockets to a new binary, and drain: exit 1 and the reason if it stays",
		Long: "Have a running daemon start the binary at its own path, with the same arguments, and hand it the listening\n" +
			"sockets. Once the new process serves, the old one drains: no client is refused. If the new one does not come\n" +
			"to serve, the old one serves on as before, and this command prints why and ends with 1. SIGUSR2 to the daemon\n" +
			"does the same.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			raw, err := admin.call(c.Context(), http.MethodPost, "/api/v1/upgrade?timeout="+admin.patience.String(), nil)
			if err != nil {
				return err
			}
			var next struct{ PID int }
			if err := json.Unmarshal(raw, &next); err != nil {
				return fmt.Errorf("what answers at %s is no warmpath admin listener: %w", admin.at, err)
			}
			version := ""
			var o operator.Overview
			if _, err := admin.get(c.Context(), "/api/v1/overview", &o); err == nil { // from the new process; only for display
				version = ", warmpath " + o.Version + ","
			}
			_, err = fmt.Fprintf(c.OutOrStdout(), "upgraded: process %d%s serves; the old one drains\n", next.PID, version)
			return err
		},
	}
	admin.flags(c)
	c.Flags().DurationVar(&admin.patience, "timeout", unit.UpgradeTimeout,
		"how long the new process has to serve, up to 10m")
	return c
}
