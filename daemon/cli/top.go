package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/warmpath/warmpath/daemon/admin/decisions"
	"github.com/warmpath/warmpath/daemon/admin/operator"
)

func topCommand() *cobra.Command {
	t := top{every: time.Second}
	c := &cobra.Command{
		Use:   "top",
		Short: "Show a running daemon live: workers, rates and the last decisions; Ctrl-C ends it",
		Long: "Show a running daemon live: workers, rates and the last decisions. Ctrl-C ends it. Where the output is no " +
			"terminal, each look is printed below the one before. With --json each look is a line: the daemon's overview, " +
			"recent (the last hour), decisions, and open, the requests that are under way, each with its worker and its " +
			"age in seconds.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if t.looks < 0 {
				return wrongLine{fmt.Errorf("--looks %d is negative; give a number of looks, or 0 to go on", t.looks)}
			}
			out := bare(c.OutOrStdout()) // for top's own control sequences
			return t.run(c.Context(), out, terminal(out) && !t.asJSON)
		},
	}
	t.flags(c)
	c.Flags().DurationVar(&t.every, "every", t.every, "between two looks")
	c.Flags().IntVarP(&t.looks, "looks", "n", 0, "end after so many looks; 0 = go on")
	return c
}

// top holds the flags of the command. It draws with four control sequences that every terminal supports. A library
// for terminal pages would add many packages for a table without input.
type top struct {
	pageFlags
	every time.Duration
	looks int
}

// Control sequences of ECMA-48: to the other screen and back, to the top, clear to the end of line and of screen.
const (
	otherScreen = "\x1b[?1049h\x1b[?25l"
	firstScreen = "\x1b[?25h\x1b[?1049l"
	toTheTop    = "\x1b[H"
	clearLine   = "\x1b[K"
	clearRest   = "\x1b[J"
)

// terminal reports whether out is a terminal.
func terminal(out io.Writer) bool {
	f, ok := out.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb"
}

// run draws the page again and again until ctx ends. It waits for a daemon that does not answer, except at the start.
func (t *top) run(ctx context.Context, out io.Writer, live bool) error {
	if live {
		fmt.Fprint(out, otherScreen)
		defer fmt.Fprint(out, firstScreen)
	}
	for n := 1; ; n++ {
		page, err := t.page(ctx, size(out, live))
		page = harmless(nil, page)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && (n == 1 || t.asJSON):
			return err
		case err != nil:
			page = harmless(nil, []byte(err.Error()+"\n"))
		}
		if live { // without the last newline, which would scroll a full screen
			page = bytes.ReplaceAll(bytes.TrimSuffix(redden(page), []byte("\n")), []byte("\n"), []byte(clearLine+"\n"))
			page = slices.Concat([]byte(toTheTop), page, []byte(clearLine+clearRest))
		}
		if _, err := out.Write(page); err != nil {
			return err
		}
		if n == t.looks {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(max(t.every, 100*time.Millisecond)):
		}
	}
}

// page makes the page once.
func (t *top) page(ctx context.Context, to screen) ([]byte, error) {
	var (
		o          operator.Overview
		hours      []operator.PoolHour
		last, open []decisions.Decision
	)
	overview := "overview"
	if to.rows > 0 && !t.asJSON { // of more workers there is no room
		overview += fmt.Sprint("?limit=", to.rows)
	}
	pages := map[string]any{overview: &o, "recent": &hours, "decisions?limit=12": &last}
	if t.asJSON {
		pages["decisions?open=1&limit=1000"] = &open
	}
	for path, page := range pages {
		if _, err := t.get(ctx, "/api/v1/"+path, page); err != nil {
			return nil, err
		}
	}
	if t.asJSON {
		line, err := json.Marshal(map[string]any{"overview": &o, "recent": hours, "decisions": last, "open": open})
		return append(line, '\n'), err
	}
	return to.draw(&o, hours, last)
}
