package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/warmpath/warmpath/conf"
	"github.com/warmpath/warmpath/daemon/cli/redecide"
	"github.com/warmpath/warmpath/host"
)

func pluginRunCommand() *cobra.Command {
	var asJSON bool
	var wish pluginWish
	var records string
	c := &cobra.Command{
		Use:   "run FILE.wasm --records ACCESS.LOG",
		Short: "Decide recorded requests again, and tell where the module differs and what it believes to gain",
		Long: "Decide recorded requests again, and tell where the module differs and what it believes to gain.\n\n" +
			"The records are lines of an access log that server.explain_log picked: they hold the rows that the strategy " +
			"decided by, the key of the caller, the labels, and the header fields that the strategy could see. The store is " +
			"not recorded, nor are other header fields: requests for which the module asks for these are not judged. Own, the " +
			"number that a strategy keeps for each worker, is recorded as the strategy of that time had it: a module that " +
			"uses Own is judged by numbers which it has not learnt, unless the records are its own. " +
			"--records - reads standard input.",
		Example: "  warmpath plugin run mine.wasm --records /var/log/warmpath/access.log --options each=.02",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if records == "" {
				return errors.New("plugin: name the access log, as in: warmpath plugin run FILE.wasm --records access.log")
			}
			r, err := runPlugin(c.Context(), args[0], records, wish, c.InOrStdin())
			if err != nil {
				return err
			}
			if asJSON {
				return json.NewEncoder(c.OutOrStdout()).Encode(r)
			}
			return printRun(c.OutOrStdout(), args[0], r)
		},
	}
	c.Flags().StringVar(&records, "records", "", "the access log")
	c.Flags().BoolVar(&asJSON, "json", false, "print the figures as JSON")
	c.Flags().StringToStringVar(&wish.options, "options", nil, "options of the strategy, as in max=4,tier=batch")
	c.Flags().StringSliceVar(&wish.allow, "allow", nil, "what it may use, as strategies.NAME.allow: kv,headers:x-tier")
	return c
}

// runPlugin makes the module decide the records again.
func runPlugin(ctx context.Context, file, records string, wish pluginWish, stdin io.Reader) (*redecide.Report, error) {
	wasm, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("plugin: the module cannot be read; give the path of a .wasm file: %w", err)
	}
	log := stdin
	if records != "-" {
		f, err := os.Open(records)
		if err != nil {
			return nil, fmt.Errorf("plugin: --records cannot be read; give the path of an access log: %w", err)
		}
		defer f.Close()
		log = f
	}
	limits := conf.DefaultStrategy()
	store := &redecide.Store{}
	h, err := host.New(ctx, host.Config{Stepped: true, KV: store})
	if err != nil {
		return nil, err
	}
	defer h.Close(ctx)
	s, err := h.Load(ctx, strings.TrimSuffix(filepath.Base(file), ".wasm"), wasm, host.Options{Fuel: limits.Fuel,
		MemoryBytes: limits.MemoryMB << 20, Values: wish.options, Allow: wish.allow, Seed: 1})
	if err != nil {
		return nil, err
	}
	defer s.Close(ctx)
	r, err := redecide.Run(ctx, s, store, log)
	if err != nil {
		return nil, err
	}
	if r.Decided == 0 && r.Unfit > 0 {
		return nil, fmt.Errorf("plugin: none of %d lines of %s can be judged: the strategy asks for %s, and records hold "+
			"none of it; let it be a shadow, which sees all", r.Lines, records, strings.Join(r.Lacks, ", "))
	}
	if r.Decided+r.Bound == 0 {
		return nil, fmt.Errorf("plugin: none of %d lines of %s can be decided again: %d have no rows, so set "+
			"server.explain_log = \"all\" for a while; %d are bad%s", r.Lines, records, r.Unheld, r.BadLines, firstBad(r))
	}
	return r, nil
}

func firstBad(r *redecide.Report) string {
	if len(r.Bad) == 0 {
		return ""
	}
	return fmt.Sprintf(", as line %d: %s", r.Bad[0].Line, r.Bad[0].Why)
}

// printRun prints the report for a person.
func printRun(w io.Writer, file string, r *redecide.Report) error {
	compared := r.Decided - r.Declined - r.Rejected - r.Held - r.Failed
	_, err := fmt.Fprintf(w, "%s: %d of %d lines decided again\n"+
		"  left out         %d without rows, %d of bound sessions, %d bad\n%s"+
		"  agrees           %d of %d\n"+
		"  declines         %d, rejects %d that were not, holds %d, fails %d%s\n"+
		"  were rejected    %d, and to reject them is to agree\n"+
		"  tokens held      %.0f at its workers, %.0f at those recorded (%+.0f)\n"+
		"  believed cost    %.3f s, %.3f s recorded (%+.3f)\n",
		file, r.Decided, r.Lines, r.Unheld, r.Bound, r.BadLines, unjudged(r), r.Agreed, compared,
		r.Declined, r.Rejected, r.Held, r.Failed, because(r.Last), r.Turned,
		r.Chosen.HeldTokens, r.Recorded.HeldTokens, r.Chosen.HeldTokens-r.Recorded.HeldTokens,
		r.Chosen.Seconds, r.Recorded.Seconds, r.Chosen.Seconds-r.Recorded.Seconds)
	for _, d := range r.Differ {
		if err == nil {
			_, err = fmt.Fprintf(w, "  line %-6d %s: %s, not %s: %s; %+.0f tokens held, %+.3f s\n", d.Line, d.ID, d.Chosen,
				d.Recorded, d.Reason, d.Gain.HeldTokens, -d.Gain.Seconds)
		}
	}
	if more := compared - r.Agreed - len(r.Differ); more > 0 && err == nil {
		_, err = fmt.Fprintf(w, "  and %d more that differ\n", more)
	}
	for _, b := range r.Bad {
		if err == nil {
			_, err = fmt.Fprintf(w, "  line %-6d is bad: %s\n", b.Line, b.Why)
		}
	}
	return err
}

// unjudged formats the lines about records that lack data which the strategy asked for, or whose Own is not its own.
func unjudged(r *redecide.Report) string {
	text := ""
	if r.Unfit > 0 {
		text = fmt.Sprintf("  not judged       %d: it asked for %s, which records do not hold\n", r.Unfit,
			strings.Join(r.Lacks, ", "))
	}
	if r.Others > 0 {
		text += fmt.Sprintf("  Own              in %d records it is that of another strategy (%s), and says nothing of what "+
			"this one has learnt: let it be a shadow\n", r.Others, r.Other)
	}
	return text
}

// because formats an error to follow a count.
func because(text string) string {
	if text == "" {
		return ""
	}
	return " (the last: " + text + ")"
}
