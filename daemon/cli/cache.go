package cli

import (
	"context"
	"encoding/json"
	"errors"
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

	"github.com/warmpath/warmpath/cache/kvstore/chunks"
	"github.com/warmpath/warmpath/daemon/admin/operator"
	"github.com/warmpath/warmpath/daemon/kv/kvcache"
)

// cacheAsk holds the flags of `warmpath cache`.
type cacheAsk struct {
	pageFlags
	out    io.Writer
	prefix string
}

func cacheCommand() *cobra.Command {
	var q cacheAsk
	c := &cobra.Command{
		Use:   "cache",
		Short: "Look into the workers' KV cache of a running daemon, and delete from it",
		Long: "Look into the workers' KV cache of a running daemon, and delete from it. A key is written " +
			"resp/DATABASE/KEY or hyperpod/BUCKET/KEY, as `ls` prints it; bytes that do not print, spaces and % stand as %XX.",
	}
	c.PersistentFlags().BoolVar(&q.asJSON, "json", false, "print JSON: an object, or one a line for each key")
	c.PersistentPreRun = func(c *cobra.Command, _ []string) { q.out = c.OutOrStdout() }
	for _, sub := range [...]*cobra.Command{q.stat(), q.list(), q.get(), q.del(), q.flush()} {
		q.adminFlags.flags(sub)
		c.AddCommand(sub)
	}
	return c
}

const cachePath = "/api/v1/cache"

func (q *cacheAsk) stat() *cobra.Command {
	c := &cobra.Command{
		Use:   "stat",
		Short: "Print what each tier holds, and how many tokens of KV there is room for",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			var s operator.CacheState
			query := url.Values{}
			if c.Flags().Changed("prefix") {
				query.Set("prefix", q.prefix)
			}
			return q.print(c, cachePath+"?"+query.Encode(), &s, func(out io.Writer) error { return writeCache(out, &s) })
		},
	}
	c.Flags().StringVar(&q.prefix, "prefix", "", "count the keys that begin so as well, up to 100,000")
	return c
}

// writeCache prints a cache's state as tables.
func writeCache(out io.Writer, s *operator.CacheState) error {
	if !s.Open {
		_, err := fmt.Fprintln(out, "the KV cache has no listener: set [kv_cache] resp or hyperpod")
		return err
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "TIER\tVALUES\tBYTES\tROOM\tHITS\tEVICTED\tSKIPPED\tSTATE")
	for _, t := range s.Tiers {
		room := "-"
		if t.MaxBytes > 0 {
			room = strconv.FormatInt(t.MaxBytes, 10)
		}
		fmt.Fprintf(w, "%s\t%d\t%d\t%s\t%d\t%d\t%d\t%s\n", t.Tier, t.Values, t.Bytes, room, t.Hits, t.Evictions, t.Skipped,
			t.State)
	}
	refused := uint64(0)
	for _, n := range s.Refused {
		refused += n
	}
	fmt.Fprintf(w, "\nPUTS\tMISSES\tREFUSED\tLEASED\tPROMISED\n%d\t%d\t%d\t%d\t%d\n", s.Puts, s.Misses, refused, s.Leased,
		s.Promised)
	if s.Tokens.Tokens > 0 {
		fmt.Fprintln(w, "\nMODEL\tBYTES A TOKEN\tPARTS\tSHARE")
		for _, m := range s.Tokens.Models {
			guess := ""
			if m.Guessed {
				guess = fmt.Sprintf(" at %d tokens a value", s.Tokens.ChunkTokens)
			}
			fmt.Fprintf(w, "%s\t%.0f%s\t%d\t%.0f %%\n", m.Name, m.BytesPerToken, guess, m.Parts, 100*m.Share)
		}
		fmt.Fprintf(w, "\nroom for %d tokens of KV", s.Tokens.Tokens)
		if s.Tokens.Guessed && s.Tokens.ChunkGuessed {
			fmt.Fprint(w, ", a guess: set [lmcache] chunk_size if the workers' is another")
		}
		fmt.Fprintln(w)
	}
	if p := s.Prefix; p != nil {
		more := ""
		if p.Cut {
			more = " and more"
		}
		fmt.Fprintf(w, "\n%d keys%s of %d bytes begin with %q\n", p.Keys, more, p.Bytes, p.Prefix)
	}
	return w.Flush()
}

func (q *cacheAsk) list() *cobra.Command {
	limit, after := 0, ""
	c := &cobra.Command{
		Use:   "ls",
		Short: "List keys in their order, with bytes and tiers",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if limit < 0 {
				return fmt.Errorf("--limit %d is negative; 0 lists all", limit)
			}
			w := tabwriter.NewWriter(q.out, 0, 0, 2, ' ', 0)
			if !q.asJSON {
				fmt.Fprintln(w, "BYTES\tTIERS\tENDS IN\tKEY")
			}
			left, more, err := q.each(c.Context(), after, limit, func(k *kvcache.Entry) error {
				if q.asJSON {
					return json.NewEncoder(q.out).Encode(k)
				}
				_, err := fmt.Fprintf(w, "%d\t%s\t%s\t%s\n", k.Size, strings.Join(k.Tiers, ","), endsIn(k), k.Key)
				return err
			})
			if err != nil {
				return err
			}
			if left == 0 && more != "" && !q.asJSON {
				fmt.Fprintf(w, "... and more: raise --limit, or go on with --after '%s'\n", more)
			}
			return w.Flush()
		},
	}
	f := c.Flags()
	f.StringVar(&q.prefix, "prefix", "", "only keys that begin so")
	f.StringVar(&after, "after", "", "only keys that come after this one")
	f.IntVar(&limit, "limit", 1000, "list at most so many; 0 = all")
	return c
}

func endsIn(k *kvcache.Entry) string {
	if k.Expires.IsZero() {
		return "-"
	}
	return time.Until(k.Expires).Round(time.Second).String()
}

// each calls f for up to limit keys, page by page; 0 = all. It returns the rest of the limit, and where a next page
// would begin.
func (q *cacheAsk) each(ctx context.Context, after string, limit int, f func(*kvcache.Entry) error) (int, string,
	error) {
	const most = 1000 // of a page
	for all := limit == 0; all || limit > 0; {
		n := most
		if !all {
			n = min(n, limit)
		}
		var page operator.CacheKeys
		query := url.Values{"prefix": {q.prefix}, "after": {after}, "limit": {strconv.Itoa(n)}}
		if _, err := q.adminFlags.get(ctx, cachePath+"/keys?"+query.Encode(), &page); err != nil {
			return 0, "", err
		}
		for i := range page.Keys {
			if err := f(&page.Keys[i]); err != nil {
				return 0, "", err
			}
		}
		limit -= min(limit, len(page.Keys))
		after = page.Next
		if after == "" {
			return limit, "", nil
		}
	}
	return limit, after, nil
}

func (q *cacheAsk) get() *cobra.Command {
	output := ""
	c := &cobra.Command{
		Use:   "get KEY",
		Short: "Print what is known of a value; with --output write its bytes",
		Args:  cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if output != "" {
				return q.save(c.Context(), args[0], output)
			}
			return q.describe(c.Context(), args[0])
		},
	}
	c.Flags().StringVarP(&output, "output", "o", "", "write the value to this file; - is the standard output")
	return c
}

var errNoKey = errors.New("there is no such key; `warmpath cache ls` lists them")

// describe prints a key's size and tiers, and the parts of an LMCache key.
func (q *cacheAsk) describe(ctx context.Context, key string) error {
	q.prefix = key
	raw, err := kvcache.ParseText(key)
	if err != nil {
		return err
	}
	found := false
	_, _, err = q.each(ctx, "", 1, func(k *kvcache.Entry) error {
		if text := kvcache.Text(raw); k.Key != text {
			return nil
		}
		found = true
		if q.asJSON {
			return json.NewEncoder(q.out).Encode(k)
		}
		w := tabwriter.NewWriter(q.out, 0, 0, 2, ' ', 0)
		fmt.Fprintf(w, "key\t%s\nbytes\t%d\ntiers\t%s\nends in\t%s\n", k.Key, k.Size, strings.Join(k.Tiers, ","), endsIn(k))
		if lm, ok := chunks.ParseKey(raw); ok {
			fmt.Fprintf(w, "model\t%s\npart\t%s\n", lm.Model, lm.Part)
		}
		return w.Flush()
	})
	if err == nil && !found {
		return errNoKey
	}
	return err
}

// valueTime bounds how long the transfer of a value may take.
const valueTime = time.Minute

// save writes a value's bytes.
func (q *cacheAsk) save(ctx context.Context, key, file string) (err error) {
	ctx, cancel := context.WithTimeout(ctx, valueTime)
	defer cancel()
	resp, err := q.open(ctx, http.MethodGet, cachePath+"/value?"+url.Values{"key": {key}}.Encode(), nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 1000))
		return fmt.Errorf("the admin listener at %s answers %s: %s", q.at, resp.Status, said(text))
	}
	out := q.out
	if file != "-" {
		f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600) // text of prompts can be computed from it
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, f.Close()) }()
		out = f
	}
	n, err := io.Copy(out, resp.Body)
	if err == nil && n != resp.ContentLength {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return fmt.Errorf("the value broke off after %d bytes: %w", n, err)
	}
	return nil
}

func (q *cacheAsk) del() *cobra.Command {
	return &cobra.Command{
		Use:   "del KEY...",
		Short: "Delete keys in all tiers",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			total := operator.CacheDeleted{}
			for _, key := range args {
				d, err := q.remove(c.Context(), url.Values{"key": {key}})
				if err != nil {
					return err
				}
				total.Deleted += d.Deleted
			}
			return q.writeDeleted(total.Deleted)
		},
	}
}

func (q *cacheAsk) flush() *cobra.Command {
	c := &cobra.Command{
		Use:   "flush",
		Short: "Delete all keys, or with --prefix those that begin so, in all tiers",
		Long: "Delete all keys, or with --prefix those that begin so, in this daemon's memory, on its disk and in L2, " +
			"whoever put them there. What other daemons of a Redis have in their own memory stays.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			q.patience = operator.FlushTime
			deleted := 0
			for after := ""; ; {
				d, err := q.remove(c.Context(), url.Values{"prefix": {q.prefix}, "after": {after}})
				if err != nil && deleted == 0 { // the error says what this call has deleted
					return err
				}
				if err != nil {
					return fmt.Errorf("%d keys were deleted, then: %w", deleted, err)
				}
				deleted += d.Deleted
				after = d.Next
				if after == "" {
					return q.writeDeleted(deleted)
				}
			}
		},
	}
	c.Flags().StringVar(&q.prefix, "prefix", "", "only keys that begin so")
	return c
}

// remove makes the daemon delete, and returns the result.
func (q *cacheAsk) remove(ctx context.Context, query url.Values) (d operator.CacheDeleted, err error) {
	raw, err := q.call(ctx, http.MethodDelete, cachePath+"/keys?"+query.Encode(), nil)
	if err == nil {
		err = json.Unmarshal(raw, &d)
	}
	return d, err
}

func (q *cacheAsk) writeDeleted(n int) error {
	if q.asJSON {
		return json.NewEncoder(q.out).Encode(map[string]int{"deleted": n})
	}
	_, err := fmt.Fprintf(q.out, "deleted %d\n", n)
	return err
}
