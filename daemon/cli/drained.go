package cli

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/warmpath/warmpath/daemon/admin/operator"
)

// toldWithin is how long other routers may take to learn of a drain: one beat of a second to receive it, and another
// one until their counts of requests in flight arrive here.
const toldWithin = 3 * time.Second

// drained waits until a worker that is drained has no request, of this router or of another that shares the history.
type drained struct {
	admin        *adminFlags
	wait         time.Duration
	pool, worker string
	others       []string // names of the other routers that are alive
	lost         bool     // the history is lost: other routers receive nothing
}

// await waits until nothing is in flight at the worker. Beside other routers that must last for toldWithin.
func (d *drained) await(ctx context.Context, out io.Writer) error {
	if d.wait == 0 {
		return nil
	}
	idle := time.Now()
	for end := idle.Add(d.wait); ; {
		left, err := d.left(ctx)
		if err != nil {
			return err
		}
		now := time.Now()
		if len(left) > 0 {
			idle = now
		}
		switch {
		case len(left) == 0 && (len(d.others) == 0 || now.Sub(idle) >= toldWithin):
			_, err := fmt.Fprintln(out, d.over())
			return err
		case now.After(end) && len(left) == 0:
			return fmt.Errorf("nothing is in flight at %s, and %s may still send there: they hear of a drain within %s; "+
				"--wait longer", d.worker, strings.Join(d.others, ", "), toldWithin)
		case now.After(end):
			return d.still(left)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// over reports that the worker is idle, and which routers were asked.
func (d *drained) over() string {
	switch {
	case d.lost:
		return "it is idle at this router; the history is lost, so other routers were not told: drain it there"
	case len(d.others) > 0:
		return "it is idle at this router and at " + strings.Join(d.others, ", ") + ": safe to stop"
	}
	return "it is idle: safe to stop"
}

// still is the error that requests are left, by router.
func (d *drained) still(left map[string]int) error {
	all, list := 0, []string{}
	for _, router := range slices.Sorted(maps.Keys(left)) {
		all += left[router]
		list = append(list, fmt.Sprintf("%d of %s", left[router], router))
	}
	more := ""
	if len(left) > 1 || left[ownRouter] == 0 {
		more = "; if another router goes on sending there, drain it there too"
	}
	return fmt.Errorf("%s still at %s after %s: %s%s", count(all, "request"), d.worker, d.wait,
		strings.Join(list, ", "), more)
}

const ownRouter = "this router"

// left counts the requests in flight at the worker by router, and updates the list of other routers.
func (d *drained) left(ctx context.Context) (map[string]int, error) {
	var pools []operator.PoolState
	if _, err := d.admin.get(ctx, "/api/v1/pools", &pools); err != nil {
		return nil, err
	}
	var routers operator.RoutersState
	if _, err := d.admin.get(ctx, "/api/v1/routers", &routers); err != nil {
		return nil, err
	}
	left, ids, theirs := map[string]int{}, map[string]bool{}, 0
	for i := range pools {
		for k := range pools[i].Workers {
			if w := &pools[i].Workers[k]; pools[i].Name == d.pool && (w.ID == d.worker || w.Endpoint == d.worker) {
				left[ownRouter] += w.InFlight
				theirs += w.Others
				ids[w.ID] = true
			}
		}
	}
	d.others, d.lost = nil, routers.On && !routers.Connected
	for i := range routers.Pools {
		for k := range routers.Pools[i].Routers {
			if r := &routers.Pools[i].Routers[k]; routers.Pools[i].Name == d.pool && r.Alive {
				d.others = append(d.others, "router "+r.Name)
				for id, n := range r.At {
					if ids[id] {
						left["router "+r.Name] += n
						theirs -= n
					}
				}
			}
		}
	}
	left["other routers"] = max(0, theirs) // of one whose workers' names are not known here
	maps.DeleteFunc(left, func(_ string, n int) bool { return n == 0 })
	return left, nil
}
