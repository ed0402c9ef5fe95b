package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/warmpath/warmpath/cache/kvstore/remote"
	"github.com/warmpath/warmpath/cache/tier"
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
	if err := checkRedis(file, c); err != nil {
		return err
	}
	return crew.Check(c)
}

// checkRedis parses the URLs of Redis servers as the daemon does when it starts. It returns nil or conf.Problems.
func checkRedis(file string, c *conf.Config) error {
	var ps conf.Problems
	f := func(key string, read func() (string, error), parse func(url string) error) {
		url, err := read()
		if err == nil && url != "" {
			err = parse(url)
		}
		if err != nil {
			ps = append(ps, conf.Problem{File: file, Key: key, What: err.Error()})
		}
	}
	state := func(url string) error { _, err := tier.Options(url, 0); return err }
	f("cache.redis", c.Cache.RedisURL, state)
	if c.History.Redis+c.History.RedisURLFile != "" { // else it is the cache's
		f("history.redis", func() (string, error) { return c.History.RedisURL(&c.Cache) }, state)
	}
	if l2 := &c.KVCache.L2; l2.Enabled && l2.Backend == conf.BackendRedis {
		f("kv_cache.l2.url", l2.RedisURL, remote.CheckURL)
	}
	if ps == nil {
		return nil
	}
	return ps
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
