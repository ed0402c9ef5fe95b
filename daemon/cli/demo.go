package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/warmpath/warmpath/conf"
	"github.com/warmpath/warmpath/daemon"
	"github.com/warmpath/warmpath/daemon/admin/operator"
	"github.com/warmpath/warmpath/daemon/lab/vllmsim"
)

// demoModel is the name that the demo's workers serve.
const demoModel = "demo"

func demoCommand() *cobra.Command {
	var cfg demoSettings
	c := &cobra.Command{
		Use:   "demo",
		Short: "Serve with simulated workers, play a short chat, and stay up to be tried",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return demo(c.Context(), c.OutOrStdout(), c.ErrOrStderr(), cfg)
		},
	}
	f := c.Flags()
	f.StringVar(&cfg.listen, "listen", "127.0.0.1:8080", "address for clients")
	f.StringVar(&cfg.admin, "admin", "127.0.0.1:9090", "address for /metrics")
	f.IntVar(&cfg.workers, "workers", 4, "number of simulated workers")
	f.BoolVar(&cfg.once, "once", false, "stop after the chat")
	return c
}

// demoSettings holds the command's flags.
type demoSettings struct {
	listen, admin string // addresses
	workers       int
	once          bool // stop after the chat
}

// demo serves with simulated workers and plays a chat, until ctx ends.
func demo(ctx context.Context, out, logs io.Writer, cfg demoSettings) error {
	sim := vllmsim.Config{Models: []string{demoModel}, KVTokens: 65536}
	fleet, err := vllmsim.StartFleet("127.0.0.1:0", cfg.workers, sim)
	if err != nil {
		return err
	}
	defer fleet.Close()
	dir, err := os.MkdirTemp("", "warmpath-demo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	c, err := demoConfig(cfg, dir, fleet.URLs())
	if err != nil {
		return err
	}
	d, err := daemon.New(c, logger(c.Server, logs))
	if err != nil {
		return err
	}
	defer d.Close()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	url := "http://" + d.Addr()
	fmt.Fprintf(out, "\nwarmpath on %s, %d simulated workers behind it, metrics on http://%s/metrics\n\n",
		url, cfg.workers, d.AdminAddr())
	err = waitUp(ctx, "http://"+d.AdminAddr(), cfg.workers)
	if err == nil {
		err = chat(ctx, out, url)
	}
	if err != nil {
		stop()
		<-ended
		return err
	}
	fmt.Fprintf(out, "\nTry it:\n\n  curl -i %s/v1/chat/completions -H 'Content-Type: application/json' "+
		"-H 'X-Warmpath-Explain: 1' \\\n"+
		"    -d '{\"model\":\"%s\",\"messages\":[{\"role\":\"user\",\"content\":\"Hello\"}]}'\n\n", url, demoModel)
	if cfg.once {
		stop()
	} else {
		fmt.Fprintln(out, "Ctrl-C ends it.")
	}
	return <-ended
}

// demoConfig writes the configuration of a pool with these workers to dir, and loads it. The daemon watches the file: a
// visitor can edit it and see the change.
func demoConfig(cfg demoSettings, dir string, urls []string) (*conf.Config, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "[server]\nlisten = %q\nadmin = %q\nlog_level = \"warn\"\nmax_connections = 256\n"+
		"[[pools]]\nname = \"demo\"\nhealth_interval = \"500ms\"\n", cfg.listen, cfg.admin)
	for i, u := range urls {
		fmt.Fprintf(&b, "[[pools.workers]]\nid = \"w%d\"\nurl = %q\n", i+1, u)
	}
	path := filepath.Join(dir, "demo.toml")
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		return nil, err
	}
	return conf.Load(path)
}

// chat plays three turns and prints for each its worker and how much was cached there.
func chat(ctx context.Context, out io.Writer, url string) error {
	type message map[string]string
	const rules = "You are a patient guide to the harbour town. "
	messages := []message{{"role": "system", "content": strings.Repeat(rules, 40)}}
	questions := []string{"Where do the ferries leave?", "And when does the first one go?", "What does it cost?"}
	fmt.Fprintln(out, "  turn  worker  prompt tokens  cached tokens  reason")
	var home string
	for i, q := range questions {
		messages = append(messages, message{"role": "user", "content": q})
		body, _ := json.Marshal(map[string]any{"model": demoModel, "messages": messages, "max_tokens": 48})
		a, err := complete(ctx, url, body)
		if err != nil {
			return fmt.Errorf("demo: turn %d: %w", i+1, err)
		}
		fmt.Fprintf(out, "  %4d  %-6s  %13d  %13d  %s\n", i+1, a.worker, a.prompt, a.cached, a.reason)
		if i == 0 {
			home = a.worker
		} else if a.worker != home || a.cached == 0 {
			return fmt.Errorf("demo: turn %d went to %s with %d cached tokens; want %s and more than 0",
				i+1, a.worker, a.cached, home)
		}
		messages = append(messages, message{"role": "assistant", "content": a.text})
	}
	return nil
}

// reply holds the parts of an answer that the chat prints.
type reply struct {
	worker, reason, text string
	prompt, cached       int
}

// complete sends one chat request.
func complete(ctx context.Context, url string, body []byte) (reply, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, "POST", url+"/v1/chat/completions", bytes.NewReader(body))
	if err != nil {
		return reply{}, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Warmpath-Explain", "1")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return reply{}, err
	}
	defer resp.Body.Close()
	var a struct {
		Choices []struct {
			Message struct{ Content string }
		}
		Usage struct {
			PromptTokens int `json:"prompt_tokens"`
			Details      *struct {
				CachedTokens int `json:"cached_tokens"`
			} `json:"prompt_tokens_details"`
		}
	}
	if err := json.NewDecoder(resp.Body).Decode(&a); err != nil || resp.StatusCode != 200 || len(a.Choices) == 0 {
		return reply{}, fmt.Errorf("status %d: %v", resp.StatusCode, err)
	}
	r := reply{worker: resp.Header.Get("X-Warmpath-Worker"), reason: resp.Header.Get("X-Warmpath-Reason"),
		text: a.Choices[0].Message.Content, prompt: a.Usage.PromptTokens}
	if a.Usage.Details != nil {
		r.cached = a.Usage.Details.CachedTokens
	}
	return r, nil
}

// waitUp waits until all workers are up: with fewer, the chat's home would be another one from time to time.
func waitUp(ctx context.Context, admin string, workers int) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for {
		var pools []operator.PoolState
		req, _ := http.NewRequestWithContext(ctx, "GET", admin+"/api/v1/pools", nil)
		resp, err := http.DefaultClient.Do(req)
		if err == nil {
			_ = json.NewDecoder(resp.Body).Decode(&pools) // an answer that cannot be read counts as no worker up
			resp.Body.Close()
			if len(pools) == 1 && pools[0].Up == workers {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not all of %d workers came up within 30 s: %w", workers, ctx.Err())
		case <-time.After(50 * time.Millisecond):
		}
	}
}
