package operator

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/gofiber/fiber/v2"
)

// WhyOf lists what is wrong with a worker, each once.
func (w *WorkerState) WhyOf() string {
	var why []string
	if w.Breaker != "closed" {
		why = append(why, "breaker "+w.Breaker)
	}
	if w.Lately > 1 {
		why = append(why, strconv.Itoa(w.Lately)+" restarts in 5 min")
	}
	if w.Why != "" {
		why = append(why, w.Why)
	}
	if w.LastError != "" && !w.ErrorOver && w.LastError != w.Why { // an ejected worker's Why is often its last error
		why = append(why, w.LastError)
	}
	if e := w.Events; e != nil && !e.Live {
		why = append(why, "KV events "+e.State)
	}
	return strings.Join(why, "; ")
}

// fits reports whether text, in lower case, is in what is shown of a worker.
func (w *WorkerState) fits(pool, text string) bool {
	has := func(s string) bool { return strings.Contains(strings.ToLower(s), text) }
	if text == "" || has(w.ID) || has(pool) || has(w.State) || has(w.WhyOf()) {
		return true
	}
	for name, value := range w.Labels {
		if has(name + "=" + value) {
			return true
		}
	}
	return false
}

// named reports whether one of the values of with= is POOL WORKER.
func named(with [][]byte, pool, worker string) bool {
	return slices.ContainsFunc(with, func(key []byte) bool { return string(key) == pool+" "+worker })
}

// inParts answers with page, which has n pools, and of their workers those that the query asks for.
func inParts(c *fiber.Ctx, n int, pools func(int) *PoolState, page any) error {
	if err := keepPart(c, n, pools); err != nil {
		return c.Status(fiber.StatusBadRequest).JSON(fiber.Map{"error": err.Error()})
	}
	return c.JSON(page)
}

// keepPart leaves of the workers of all pools those that the query asks for: pool= and find= select, then offset= are
// skipped and limit= are kept, those in trouble first. with=POOL%20WORKER keeps a worker in any case. A query without
// these keeps all, in the order of the configuration.
func keepPart(c *fiber.Ctx, n int, pools func(int) *PoolState) error {
	limit, err := strconv.Atoi(c.Query("limit", "-1"))
	offset, err2 := strconv.Atoi(c.Query("offset", "0"))
	if err != nil || err2 != nil || limit < -1 || offset < 0 {
		return errors.New("limit and offset must be numbers from 0 on")
	}
	pool, find := c.Query("pool"), strings.ToLower(strings.TrimSpace(c.Query("find")))
	if limit < 0 && offset == 0 && pool == "" && find == "" {
		return nil
	}
	with := c.Context().QueryArgs().PeekMulti("with")
	type row struct {
		rank int
		p    *PoolState
		w    *WorkerState
	}
	var fit, besides []row
	for k := range n {
		p := pools(k)
		p.Found = 0
		for i := range p.Workers {
			w := &p.Workers[i]
			if (pool == "" || pool == p.Name) && w.fits(p.Name, find) {
				p.Found++
				fit = append(fit, row{p.Rank(w), p, w})
			} else {
				besides = append(besides, row{p: p, w: w})
			}
		}
		p.Workers = []WorkerState{}
	}
	slices.SortStableFunc(fit, func(a, b row) int {
		if a.rank == b.rank && a.rank < rankLate {
			return b.w.Since.Compare(a.w.Since)
		}
		return cmp.Compare(a.rank, b.rank)
	})
	from, to := min(offset, len(fit)), len(fit)
	if limit >= 0 {
		to = from + min(limit, to-from)
	}
	for _, r := range fit[from:to] {
		r.p.Workers = append(r.p.Workers, *r.w)
	}
	if len(with) == 0 {
		return nil
	}
	for _, r := range slices.Concat(fit[:from], fit[to:], besides) {
		if named(with, r.p.Name, r.w.ID) {
			r.p.Workers = append(r.p.Workers, *r.w)
		}
	}
	return nil
}
