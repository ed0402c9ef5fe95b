package operator

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/warmpath/warmpath/cache/kvstore"
	"github.com/warmpath/warmpath/cache/kvstore/chunks"
	"github.com/warmpath/warmpath/cache/kvstore/remote"
	"github.com/warmpath/warmpath/daemon/kv/kvcache"
)

// CacheState is the answer of /api/v1/cache: the state of the workers' KV cache.
type CacheState struct {
	Open     bool              `json:"open"` // it has a listener; without one all other values are zero
	Policy   string            `json:"policy,omitempty"`
	Tiers    []CacheTier       `json:"tiers"`
	Misses   uint64            `json:"misses"`
	Puts     uint64            `json:"puts"`
	Refused  map[string]uint64 `json:"refused"` // values, by reason
	Leased   int               `json:"leased"`  // values being read
	Promised int               `json:"promised"`
	Tokens   chunks.Estimate   `json:"tokens"`
	Prefix   *CachePrefix      `json:"prefix,omitempty"`
}

// CacheTier is one tier of the KV cache: l1 is memory, disk holds values that memory evicted, l2 is the tier behind, of
// which only keys count that this daemon put there or found there.
type CacheTier struct {
	Tier      string `json:"tier"`
	Values    int    `json:"values"`
	Bytes     int64  `json:"bytes"`
	MaxBytes  int64  `json:"max_bytes,omitempty"`
	Hits      uint64 `json:"hits"`
	Evictions uint64 `json:"evictions"`
	Skipped   uint64 `json:"skipped"` // values that were put and not written there; a disk is offered them again
	State     string `json:"state"`   // up, or of l2 which servers are down or refuse values
}

// CachePrefix counts the keys with a prefix.
type CachePrefix struct {
	Prefix string `json:"prefix"`
	Keys   int    `json:"keys"`
	Bytes  int64  `json:"bytes"`
	Cut    bool   `json:"cut"` // there are more
}

// CacheKeys is one page of /api/v1/cache/keys.
type CacheKeys struct {
	Keys []kvcache.Entry `json:"keys"` // as kvcache.Text writes them
	Next string          `json:"next"` // after= of the next page; "" = this was the last
}

// CacheDeleted is what a deletion did.
type CacheDeleted struct {
	Deleted int    `json:"deleted"`
	Next    string `json:"next"` // after= of the next call; "" = all is done
}

// Bounds of the pages.
const (
	someKeys   = 100
	mostKeys   = 1000
	mostSummed = 100_000 // keys of ?prefix=, some 50 ms
	mostGone   = 5000    // deletions in one call
	summedOnce = 1000
)

// FlushTime bounds a deletion of all keys with a prefix at the servers of L2: they visit all of their keys for it, ten
// million in half of that.
const FlushTime = time.Minute

// valueTime bounds how long L2 may take for a value.
const valueTime = time.Minute

// cacheRoutes adds the routes of the workers' KV cache.
func cacheRoutes(app *fiber.App, k *kvcache.Cache) {
	app.Get("/api/v1/cache", func(c *fiber.Ctx) error { return cacheState(c, k) })
	app.Get("/api/v1/cache/keys", func(c *fiber.Ctx) error { return cacheKeys(c, k) })
	app.Delete("/api/v1/cache/keys", func(c *fiber.Ctx) error { return cacheDelete(c, k) })
	app.Get("/api/v1/cache/value", func(c *fiber.Ctx) error { return cacheValue(c, k) })
}

// keyParam parses a key or prefix. If the text is not valid, keyParam answers 400 and returns false.
func keyParam(c *fiber.Ctx, name string) (string, bool) {
	key, err := kvcache.ParseText(c.Query(name))
	if err != nil {
		_ = c.Status(fiber.StatusBadRequest).JSON(fiber.Map{"error": name + ": " + err.Error()})
	}
	return key, err == nil
}

// pageParams parses the parameters of a page of keys, as keyParam does.
func pageParams(c *fiber.Ctx) (prefix, after string, ok bool) {
	prefix, ok = keyParam(c, "prefix")
	if ok {
		after, ok = keyParam(c, "after")
	}
	return prefix, after, ok
}

// cacheState answers GET /api/v1/cache?prefix=P.
func cacheState(c *fiber.Ctx, k *kvcache.Cache) error {
	prefix, ok := keyParam(c, "prefix")
	if !ok {
		return nil
	}
	s := describeCache(k)
	if c.Context().QueryArgs().Has("prefix") {
		s.Prefix = sumPrefix(k, prefix)
	}
	return c.JSON(s)
}

// tierUp is the state of a tier with which nothing is wrong.
const tierUp = "up"

// stateOfL2 says which servers of L2 are down or take no values.
func stateOfL2(servers []remote.ServerStats) string {
	var wrong []string
	for i := range servers {
		switch s := &servers[i]; {
		case !s.Up && s.DownFor >= time.Second:
			wrong = append(wrong, fmt.Sprintf("%s down for %s", s.Address, s.DownFor.Round(time.Second)))
		case !s.Up:
			wrong = append(wrong, s.Address+" down")
		case s.Refuses != "":
			wrong = append(wrong, s.Address+" refuses values: "+s.Refuses)
		}
	}
	return cmp.Or(strings.Join(wrong, "; "), tierUp)
}

func describeCache(k *kvcache.Cache) CacheState {
	out := CacheState{Tiers: []CacheTier{}, Refused: map[string]uint64{},
		Tokens: chunks.Estimate{Models: []chunks.Model{}}}
	if k == nil {
		return out
	}
	all, open := k.Stats()
	if !open {
		return out
	}
	s := &all.Store
	out.Open, out.Policy, out.Misses, out.Puts, out.Refused = true, k.Policy(), s.Misses, s.Puts, s.Refused
	out.Leased, out.Promised = s.Leases, s.Pins
	out.Tiers = append(out.Tiers, CacheTier{Tier: "l1", Values: s.Entries, Bytes: s.ValueBytes, MaxBytes: s.ArenaBytes,
		Hits: s.Hits, Evictions: s.Evictions, State: tierUp})
	if d := all.Spill; d != nil {
		out.Tiers = append(out.Tiers, CacheTier{Tier: "disk", Values: d.Values, Bytes: d.Bytes,
			MaxBytes: d.MaxBytes, Hits: d.Read, Evictions: d.Dropped, Skipped: d.Skipped,
			State: tierUp})
	}
	if l := all.L2; l != nil {
		out.Tiers = append(out.Tiers, CacheTier{Tier: "l2", Values: all.InL2.Keys, Bytes: all.InL2.ValueBytes,
			MaxBytes: all.L2Bytes, Hits: l.Hits, Skipped: l.Unwritten(), State: stateOfL2(l.Servers)})
	}
	out.Tokens, _ = k.Holds()
	return out
}

// sumPrefix counts keys, a page at a time.
func sumPrefix(k *kvcache.Cache, prefix string) *CachePrefix {
	sum := &CachePrefix{Prefix: kvcache.Text(prefix)}
	for after := ""; ; {
		page := k.Page(prefix, after, summedOnce)
		for i := range page {
			sum.Keys++
			sum.Bytes += page[i].Size
		}
		switch {
		case len(page) < summedOnce:
			return sum
		case sum.Keys >= mostSummed:
			sum.Cut = true
			return sum
		}
		after = page[len(page)-1].Key
	}
}

// cacheKeys answers GET /api/v1/cache/keys?prefix=P&after=KEY&limit=N.
func cacheKeys(c *fiber.Ctx, k *kvcache.Cache) error {
	limit, err := strconv.Atoi(c.Query("limit", strconv.Itoa(someKeys)))
	if err != nil || limit < 1 || limit > mostKeys {
		return c.Status(fiber.StatusBadRequest).JSON(fiber.Map{
			"error": "limit must be a number from 1 to " + strconv.Itoa(mostKeys)})
	}
	prefix, after, ok := pageParams(c)
	if !ok {
		return nil
	}
	out := CacheKeys{Keys: append([]kvcache.Entry{}, k.Page(prefix, after, limit)...)}
	for i := range out.Keys {
		out.Keys[i].Key = kvcache.Text(out.Keys[i].Key)
	}
	if len(out.Keys) == limit {
		out.Next = out.Keys[limit-1].Key
	}
	return c.JSON(out)
}

// cacheDelete answers DELETE /api/v1/cache/keys?key=K, and ?prefix=P&after=KEY. A key that is put meanwhile before the
// present page stays. With the last page of a prefix the servers of L2 also delete keys that others have put there.
func cacheDelete(c *fiber.Ctx, k *kvcache.Cache) error {
	args := c.Context().QueryArgs()
	if args.Has("key") == args.Has("prefix") {
		return c.Status(fiber.StatusBadRequest).JSON(fiber.Map{
			"error": "name one key=, or a prefix=; an empty prefix is all keys"})
	}
	out := CacheDeleted{}
	if args.Has("key") {
		key, ok := keyParam(c, "key")
		if !ok {
			return nil
		}
		if k.Delete(key) {
			out.Deleted = 1
		}
		return c.JSON(out)
	}
	prefix, after, ok := pageParams(c)
	if !ok {
		return nil
	}
	page := k.Page(prefix, after, mostGone)
	for i := range page {
		if k.Delete(page[i].Key) {
			out.Deleted++
		}
	}
	if len(page) == mostGone {
		out.Next = kvcache.Text(page[mostGone-1].Key)
		return c.JSON(out)
	}
	ctx, cancel := context.WithTimeout(context.Background(), FlushTime)
	defer cancel()
	there, err := k.FlushL2(ctx, prefix)
	out.Deleted += int(there)
	if err != nil {
		return c.Status(fiber.StatusBadGateway).JSON(fiber.Map{"deleted": out.Deleted, "error": fmt.Sprintf(
			"L2 keeps some of it (%d keys were deleted with this call; repeat it when L2 answers): %s", out.Deleted, err)})
	}
	return c.JSON(out)
}

// cacheValue answers GET /api/v1/cache/value?key=K with the bytes, and ends the connection. A client that does not read
// them within answerTime is cut off, because the leased value cannot make room meanwhile.
func cacheValue(c *fiber.Ctx, k *kvcache.Cache) error {
	key, ok := keyParam(c, "key")
	if !ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), valueTime)
	defer cancel()
	l := k.Value(ctx, key)
	if l == nil {
		return c.Status(fiber.StatusNotFound).JSON(fiber.Map{
			"error": "there is no such key; /api/v1/cache/keys lists them"})
	}
	c.Context().SetConnectionClose()
	c.Set(fiber.HeaderContentType, fiber.MIMEOctetStream)
	pieces := l.Pieces()
	c.Context().SetBodyStream(&value{pieces: pieces, lease: l}, int(l.Size()))
	return nil
}

// value reads a leased value. The server closes it at the end of the answer, whether or not the answer was complete.
type value struct {
	pieces [][]byte
	lease  interface{ Release() }
}

// Read implements io.Reader.
func (v *value) Read(b []byte) (int, error) {
	for len(v.pieces) > 0 && len(v.pieces[0]) == 0 {
		v.pieces = v.pieces[1:]
	}
	if len(v.pieces) == 0 {
		return 0, io.EOF
	}
	n := 0
	if err := kvstore.Touch(func() { n = copy(b, v.pieces[0]) }); err != nil {
		return 0, err
	}
	v.pieces[0] = v.pieces[0][n:]
	return n, nil
}

// Close ends the lease.
func (v *value) Close() error {
	v.lease.Release()
	return nil
}
