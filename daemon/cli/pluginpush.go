package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/warmpath/warmpath/daemon/admin/strategies"
)

// reloadTime is the time that a daemon gets, beyond adminTimeout, to compile modules and to resolve the workers of
// its file.
const reloadTime = 2 * time.Minute

func pluginPushCommand() *cobra.Command {
	p := push{pageFlags: pageFlags{adminFlags: adminFlags{patience: reloadTime}}}
	c := &cobra.Command{
		Use:   "push FILE.wasm",
		Short: "Bring a module to a running daemon, which checks it: it serves at once where its name is configured",
		Long: "Bring a module to a running daemon, which checks it as it would at a start, and keeps it in " +
			"server.strategies_dir. Where pools name the strategy, as their own, a shadow or a canary, the new version serves " +
			"when this ends; what it keeps in the store stays. The daemon needs server.admin_token_file.",
		Example: "  warmpath plugin push nearest.wasm --token-file admin.token --activate main",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return p.run(c.Context(), c.OutOrStdout(), args[0])
		},
	}
	p.flags(c)
	f := c.Flags()
	f.StringVar(&p.name, "name", "", "the strategy's name; default: the file's, without .wasm")
	f.StringVar(&p.pool, "activate", "", "have it serve this pool, in the place of whom the daemon's file names")
	f.StringVar(&p.was, "replaces", "", "the SHA-256 of the module that stands there; refused if it is another by now")
	return c
}

// push holds the flags of the command.
type push struct {
	pageFlags
	name, pool, was string
}

func (p *push) run(ctx context.Context, out io.Writer, file string) error {
	wasm, err := readModule(file)
	if err != nil {
		return err
	}
	if p.pool != "" {
		if err := p.findPool(ctx); err != nil {
			return err
		}
	}
	name := cmp.Or(p.name, strings.TrimSuffix(filepath.Base(file), ".wasm"))
	headers := []string{"Content-Type", "application/wasm", "Expect", "100-continue"}
	if p.was != "" {
		headers = append(headers, "If-Match", `"`+p.was+`"`)
	}
	raw, err := p.call(ctx, http.MethodPut, "/api/v1/strategies/"+url.PathEscape(name), wasm, headers...)
	if err != nil {
		return err
	}
	var d strategies.Delivered
	if err := json.Unmarshal(raw, &d); err != nil {
		return fmt.Errorf("what answers at %s is no warmpath admin listener: %w", p.at, err)
	}
	if d.SHA256 != strategies.Sum(wasm) {
		return fmt.Errorf("the daemon has %s now, and not %s: another push came between", d.SHA256, strategies.Sum(wasm))
	}
	if p.pool != "" {
		raw, err = activate(ctx, &p.adminFlags, p.pool, name)
		if err != nil {
			return fmt.Errorf("%s is delivered, and not activated: %w", name, err)
		}
		if err := json.Unmarshal(raw, &d.Strategy); err != nil {
			return err
		}
		d.Note = ""
	}
	return p.printRaw(out, raw, func(out io.Writer) error {
		fmt.Fprintf(out, "%s is delivered: %d bytes, sha256 %s\n", name, d.Bytes, d.SHA256)
		return sayServes(out, &d.Strategy, d.Note)
	})
}

// findPool asks the daemon for the pool that the strategy shall serve. It does so before the upload, which cannot be
// undone.
func (p *push) findPool(ctx context.Context) error {
	var pools []struct {
		Name string `json:"name"`
	}
	if _, err := p.get(ctx, "/api/v1/pools", &pools); err != nil {
		return err
	}
	var names []string
	for _, one := range pools {
		if one.Name == p.pool {
			return nil
		}
		names = append(names, one.Name)
	}
	return fmt.Errorf("nothing is delivered: the daemon has no pool %q to activate it for; it has %s", p.pool,
		strings.Join(names, ", "))
}

// sayServes prints the pools that a strategy serves.
func sayServes(out io.Writer, s *strategies.Strategy, note string) (err error) {
	for i := range s.Serves {
		v := &s.Serves[i]
		line := fmt.Sprintf("%s is %s of pool %s", s.Name, v.As, v.Pool)
		if v.InsteadOf != "" {
			line += fmt.Sprintf(", activated in the place of %s, until warmpath plugin deactivate %s or another "+
				"strategy for it in the configuration", v.InsteadOf, v.Pool)
		}
		if _, err = fmt.Fprintln(out, line); err != nil {
			return err
		}
	}
	if note != "" {
		_, err = fmt.Fprintln(out, note)
	}
	return err
}

// activate makes a strategy serve a pool.
func activate(ctx context.Context, admin *adminFlags, pool, name string) ([]byte, error) {
	body, err := json.Marshal(map[string]string{"strategy": name})
	if err != nil {
		return nil, err
	}
	return admin.call(ctx, http.MethodPut, "/api/v1/pools/"+url.PathEscape(pool)+"/strategy", body)
}

func pluginActivateCommand() *cobra.Command {
	admin := adminFlags{patience: reloadTime}
	c := &cobra.Command{
		Use:   "activate POOL STRATEGY",
		Short: "Have a strategy serve a pool, in the place of the one that the daemon's file names, over restarts too",
		Args:  cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			raw, err := activate(c.Context(), &admin, args[0], args[1])
			return sayStrategy(c.OutOrStdout(), raw, err)
		},
	}
	admin.flags(c)
	return c
}

func pluginDeactivateCommand() *cobra.Command {
	admin := adminFlags{patience: reloadTime}
	c := &cobra.Command{
		Use:   "deactivate POOL",
		Short: "Have the strategy serve a pool again that the daemon's file names",
		Args:  cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			raw, err := admin.call(c.Context(), http.MethodDelete, "/api/v1/pools/"+url.PathEscape(args[0])+"/strategy", nil)
			return sayStrategy(c.OutOrStdout(), raw, err)
		},
	}
	admin.flags(c)
	return c
}

// sayStrategy prints the pools that the strategy of an answer serves.
func sayStrategy(out io.Writer, raw []byte, err error) error {
	if err != nil {
		return err
	}
	var s strategies.Strategy
	if err := json.Unmarshal(raw, &s); err != nil {
		return err
	}
	return sayServes(out, &s, "")
}

func pluginListCommand() *cobra.Command {
	var page pageFlags
	c := &cobra.Command{
		Use:   "list",
		Short: "List the strategies of a running daemon, and whom they serve",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			var all []strategies.Strategy
			return page.print(c, "/api/v1/strategies", &all, func(out io.Writer) error { return writeStrategies(out, all) })
		},
	}
	page.flags(c)
	return c
}

// writeStrategies prints a row for each strategy.
func writeStrategies(out io.Writer, all []strategies.Strategy) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "STRATEGY\tFROM\tBYTES\tSHA256\tSERVES")
	for i := range all {
		s := &all[i]
		var serves []string
		for k := range s.Serves {
			v := &s.Serves[k]
			text := v.Pool + " (" + v.As + ")"
			if v.InsteadOf != "" {
				text = v.Pool + " (activated in the place of " + v.InsteadOf + ")"
			}
			serves = append(serves, text)
		}
		fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%s\n", s.Name, s.Source, s.Bytes, cmp.Or(s.SHA256, "-"),
			cmp.Or(strings.Join(serves, ", "), "-"))
	}
	return w.Flush()
}
