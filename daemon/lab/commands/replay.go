package commands

import (
	"github.com/spf13/cobra"

	"github.com/warmpath/warmpath/daemon/lab/replay"
)

func replayCommand() *cobra.Command {
	var cfg replay.Config
	var asJSON bool
	c := &cobra.Command{
		Use:   "replay --http URL --model NAME [--model NAME] FILE",
		Short: "Play a trace against a running daemon, once under each model name, and print hit rate and TTFT",
		Args:  cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			cfg.File = args[0]
			cfg.Progress = c.ErrOrStderr()
			r, err := replay.Run(c.Context(), cfg)
			if len(r.Results) > 0 {
				write := r.WriteText
				if asJSON {
					write = r.WriteJSON
				}
				if e := write(c.OutOrStdout()); e != nil {
					return e
				}
			}
			return err
		},
	}
	f := c.Flags()
	f.StringVar(&cfg.URL, "http", "http://127.0.0.1:8080", "base URL of the daemon")
	f.StringVar(&cfg.KeyFile, "key-file", "", "holds an API key, if the daemon has [[keys]]")
	f.StringVar(&cfg.CAFile, "ca-file", "", "the authority of the daemon's certificate, in PEM; default the system's")
	f.StringArrayVar(&cfg.Models, "model", nil, "model name; repeat it to compare pools")
	f.Float64Var(&cfg.Speed, "speed", 20, "trace seconds in a second; the workers must run as fast")
	f.DurationVar(&cfg.Spread, "spread", 0, "each request comes up to so much later than the trace says, by chance: "+
		"for traces with a coarse clock")
	f.IntVar(&cfg.Limit, "limit", 0, "only the first so many requests (0 = all)")
	f.BoolVar(&asJSON, "json", false, "print one JSON object a model")
	_ = c.MarkFlagRequired("model")
	return c
}
