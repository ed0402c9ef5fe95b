package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/warmpath/warmpath/daemon/vllmsim"
)

func simCommand() *cobra.Command {
	var listen string
	var count int
	var cfg vllmsim.Config
	c := &cobra.Command{
		Use:   "sim",
		Short: "Run simulated vLLM workers: real wire, paged KV cache and time model, no GPU",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			fleet, err := vllmsim.StartFleet(listen, count, cfg)
			if err != nil {
				return err
			}
			defer fleet.Close()
			for _, u := range fleet.URLs() {
				fmt.Fprintln(c.OutOrStdout(), u)
			}
			<-c.Context().Done()
			return nil
		},
	}
	f := c.Flags()
	f.StringVar(&listen, "listen", "127.0.0.1:9001", "address of the first worker; the others take the ports that follow")
	f.IntVar(&count, "count", 1, "number of workers")
	f.IntVar(&cfg.KVTokens, "kv-tokens", 524288, "KV cache of each worker, in tokens")
	f.Float64Var(&cfg.Speed, "speed", 1, "simulated seconds in a second")
	f.Float64Var(&cfg.Slowness, "slowness", 1, "factor on the time of every step")
	f.StringSliceVar(&cfg.Models, "model", []string{"sim"}, "served model names")
	f.IntVar(&cfg.MaxModelLen, "max-model-len", 0,
		"longest prompt and reply together, in tokens (default: what the cache holds)")
	f.StringVar(&cfg.APIKey, "api-key", "", "bearer key that paths under /v1, /v2 and /inference ask for")
	f.BoolVar(&cfg.Sessions, "sessions", false, "keep SageMaker sessions on /invocations")
	f.DurationVar(&cfg.SessionLife, "session-life", 20*time.Minute, "of each, from its opening")
	f.Uint64Var(&cfg.Seed, "seed", 0, "varies the replies")
	return c
}
