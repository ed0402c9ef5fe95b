package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/warmpath/warmpath/daemon/operator"
)

func sessionsCommand() *cobra.Command {
	var q sessionsQuery
	var asJSON bool
	c := &cobra.Command{
		Use:   "sessions",
		Short: "List the live sessions of a running daemon by worker: fingerprints, never ids",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			pools, raw, err := q.fetch(c.Context())
			if err != nil {
				return err
			}
			if asJSON {
				_, err = fmt.Fprintln(c.OutOrStdout(), strings.TrimSpace(string(raw)))
				return err
			}
			return writeSessions(c.OutOrStdout(), pools, time.Now())
		},
	}
	f := c.Flags()
	f.StringVar(&q.admin, "admin", "127.0.0.1:9090", "the daemon's server.admin: HOST:PORT, or a URL")
	f.StringVar(&q.tokenFile, "token-file", "", "holds the admin listener's token, if it asks for one")
	f.StringVar(&q.worker, "worker", "", "only this worker's id")
	f.IntVar(&q.limit, "limit", 100, "list at most so many sessions of a pool; 0 = only counts")
	f.BoolVar(&asJSON, "json", false, "print the daemon's JSON")
	return c
}

// sessionsQuery is what the flags say.
type sessionsQuery struct {
	admin, tokenFile, worker string
	limit                    int
}

// fetch gets the daemon's list.
func (q *sessionsQuery) fetch(ctx context.Context) (pools []operator.PoolSessions, raw []byte, err error) {
	base := strings.TrimSuffix(q.admin, "/")
	if !strings.Contains(base, "://") {
		base = "http://" + base
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	query := url.Values{"worker": {q.worker}, "limit": {strconv.Itoa(q.limit)}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/api/v1/sessions?"+query.Encode(), nil)
	if err != nil {
		return nil, nil, fmt.Errorf("--admin %q is no address; write server.admin's HOST:PORT: %w", q.admin, err)
	}
	if q.tokenFile != "" {
		token, err := os.ReadFile(q.tokenFile)
		if err != nil {
			return nil, nil, fmt.Errorf("--token-file cannot be read: %w", err)
		}
		req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, nil, fmt.Errorf("the daemon's admin listener does not answer; is --admin its server.admin? %w", err)
	}
	defer resp.Body.Close()
	raw, err = io.ReadAll(io.LimitReader(resp.Body, 64<<20))
	if err != nil {
		return nil, nil, err
	}
	if resp.StatusCode != http.StatusOK {
		return nil, nil, fmt.Errorf("the admin listener at %s answers %s: %.200s; a token goes into --token-file",
			q.admin, resp.Status, raw)
	}
	if err := json.Unmarshal(raw, &pools); err != nil {
		return nil, nil, fmt.Errorf("what answers at %s is no warmpath admin listener: %w", q.admin, err)
	}
	return pools, raw, nil
}

// writeSessions prints counts and list as tables.
func writeSessions(out io.Writer, pools []operator.PoolSessions, now time.Time) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "POOL\tWORKER\tOPENED\tKEYS\tRESPONSES")
	for _, p := range pools {
		for _, c := range p.Workers {
			fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d\n", p.Pool, c.Worker, c.Opened, c.Keys, c.Responses)
		}
	}
	for _, p := range pools {
		if len(p.List) == 0 {
			continue
		}
		fmt.Fprintln(w, "\nPOOL\tSESSION\tKIND\tWORKER\tAGE\tENDS IN")
		for _, s := range p.List {
			ends := s.Expires
			if ends == nil {
				ends = s.Idle
			}
			left := "-"
			if ends != nil {
				left = ends.Sub(now).Round(time.Second).String()
			}
			age := now.Sub(s.Created).Round(time.Second)
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", p.Pool, s.Fingerprint, s.Kind, s.Worker, age, left)
		}
		if p.Cut {
			fmt.Fprintln(w, "... and more: raise --limit")
		}
	}
	return w.Flush()
}
