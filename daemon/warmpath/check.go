package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/warmpath/warmpath/conf"
	"github.com/warmpath/warmpath/daemon/crew"
)

func checkCommand() *cobra.Command {
	var file string
	var defaults, asJSON, probe bool
	c := &cobra.Command{
		Use:   "check",
		Short: "Check the configuration and its modules: exit 0, or 1 with line, key and remedy",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			out := c.OutOrStdout()
			if defaults {
				fmt.Fprint(out, conf.DefaultsTOML())
				return nil
			}
			err := check(file)
			if err == nil && probe {
				return probeAll(c.Context(), out, file, asJSON)
			}
			if asJSON {
				return report(out, file, err)
			}
			if err == nil {
				fmt.Fprintln(out, file+": ok")
			}
			return err
		},
	}
	configFlag(c, &file)
	c.Flags().BoolVar(&defaults, "defaults", false, "print every key with its default, and exit")
	c.Flags().BoolVar(&probe, "probe", false, "ask each worker for its health, models, metrics and events too")
	c.Flags().BoolVar(&asJSON, "json", false, "print the problems as JSON")
	return c
}

// check loads the configuration and its modules.
func check(file string) error {
	c, err := conf.Load(file)
	if err != nil {
		return err
	}
	return crew.Check(c)
}

// report writes the problems of err as JSON, and returns an error that counts them.
func report(out io.Writer, file string, err error) error {
	var ps conf.Problems
	if err != nil && !errors.As(err, &ps) {
		ps = conf.Problems{{File: file, What: err.Error()}}
	}
	if ps == nil {
		ps = conf.Problems{}
	}
	if e := json.NewEncoder(out).Encode(map[string]any{"ok": err == nil, "problems": ps}); e != nil {
		return e
	}
	if len(ps) == 1 {
		return fmt.Errorf("%s: 1 problem", file)
	}
	if err != nil {
		return fmt.Errorf("%s: %d problems", file, len(ps))
	}
	return nil
}
