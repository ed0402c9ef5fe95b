package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/warmpath/warmpath/cache/parts/goredis"
	"github.com/warmpath/warmpath/conf"
	"github.com/warmpath/warmpath/daemon/admin/operator"
	"github.com/warmpath/warmpath/daemon/admin/strategies"
	"github.com/warmpath/warmpath/daemon/kv/kvcache"
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
			if defaults && asJSON {
				return wrongLine{errors.New("--defaults prints TOML, the form of the file; leave --json out")}
			}
			if defaults {
				fmt.Fprint(out, conf.DefaultsTOML())
				return nil
			}
			notes, err := check(file)
			if asJSON && (err != nil || !probe) {
				return report(out, file, notes, err)
			}
			if err != nil {
				return err
			}
			if !asJSON {
				writeNotes(out, notes)
			}
			if probe {
				return probeAll(c.Context(), out, file, asJSON)
			}
			fmt.Fprintln(out, file+": ok")
			return nil
		},
	}
	configFlag(c, &file)
	c.Flags().BoolVar(&defaults, "defaults", false, "print every key with its default, and exit")
	c.Flags().BoolVar(&probe, "probe", false, "ask each worker for its health, models, metrics and events too")
	c.Flags().BoolVar(&asJSON, "json", false, "print the problems as JSON")
	return c
}

// check loads the configuration and its modules. The notes are about what is not wrong, and has no effect.
func check(file string) (notes []conf.Problem, err error) {
	c, err := conf.Load(file)
	if err != nil {
		return nil, err
	}
	if err := checkStart(c); err != nil {
		return nil, err
	}
	return append(conf.Notes(c), memoryNotes(c)...), strategies.Check(c)
}

// memoryNotes notes a KV cache that is larger than the memory here, which would end the process.
func memoryNotes(c *conf.Config) []conf.Problem {
	has := kvcache.SystemMemory()
	if !c.KVCache.Open() || has == 0 || int64(c.KVCache.MaxBytes) <= has {
		return nil
	}
	what := fmt.Sprintf("%d is more than this machine, or this container, has: %d", c.KVCache.MaxBytes, has)
	return []conf.Problem{c.Note("kv_cache.max_bytes", what,
		"lower it, or raise the container's limit: otherwise the kernel kills the process")}
}

func writeNotes(out io.Writer, notes []conf.Problem) {
	for _, n := range notes {
		fmt.Fprintln(out, "note:", strings.TrimPrefix(n.Error(), "conf: "))
	}
}

// checkStart parses the URLs of Redis servers and reads the operator's token. The daemon does that when it starts, and
// not at a reload. It returns nil or conf.Problems.
func checkStart(c *conf.Config) error {
	var ps conf.Problems
	f := func(key string, read func() (string, error), parse func(url string) error) {
		url, err := read()
		if err == nil && url != "" {
			err = parse(url)
		}
		if err != nil {
			ps = append(ps, c.Note(key, err.Error(), ""))
		}
	}
	if c.Server.AdminTokenFile != "" {
		f("server.admin_token_file", func() (string, error) {
			_, err := operator.Token(c.Server.AdminTokenFile)
			return "", err
		}, nil)
	}
	f("cache.redis", c.Cache.RedisURL, goredis.CheckURL)
	if c.History.Redis+c.History.RedisURLFile != "" { // else it is the cache's
		f("history.redis", func() (string, error) { return c.History.RedisURL(&c.Cache) }, goredis.CheckURL)
	}
	if l2 := &c.KVCache.L2; l2.Enabled && l2.Backend == conf.BackendRedis {
		f("kv_cache.l2.url", l2.RedisURL, goredis.CheckURL)
	}
	if ps == nil {
		return nil
	}
	return ps
}

// report writes the problems of err, and the notes, as JSON. It returns an error that counts the problems.
func report(out io.Writer, file string, notes []conf.Problem, err error) error {
	var ps conf.Problems
	if err != nil && !errors.As(err, &ps) {
		ps = conf.Problems{{File: file, What: err.Error()}}
	}
	if ps == nil {
		ps = conf.Problems{}
	}
	if notes == nil {
		notes = []conf.Problem{}
	}
	if e := json.NewEncoder(out).Encode(map[string]any{"ok": err == nil, "problems": ps, "notes": notes}); e != nil {
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
