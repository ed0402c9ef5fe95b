package route

import (
	"fmt"
	"slices"
	"strings"

	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/host"
)

// A filter says which workers a request may use, whatever their load. So it sees the rows of all that are up, those
// that the host hides for load's sake and those without room too. Afterwards the request has no other workers: whoever
// is hidden from the strategy that orders is hidden among these, and no look at the fleet, no session and no leg finds
// another one (Query.Only).

// filtered is what the filters have made of a request.
type filtered struct {
	only   *worker.Allowed // nil = there is no filter
	seen   worker.Standing // of the workers before the filters
	barred bool            // the filters keep the request from its session's worker
	nobody bool            // the filter that turned the request away has left no worker
	said   []string        // what became of the workers, a sentence for each filter
}

// filter asks the filters of s, one after the other. It returns the one that turns the request away, nil if none does,
// and its answer: a rejection, or that it was closed meanwhile.
func (c *Choice) filter(s *host.Strategy) (by *host.Strategy, r host.Result) {
	filters := s.Filters()
	if len(filters) == 0 {
		return nil, r
	}
	c.filtered = filtered{}
	f, id := &c.fleet, c.stay.worker()
	answers := c.fillAll(id)
	bound := f.row(id) >= 0
	for _, by := range filters {
		if answers == 0 {
			break
		}
		before := len(f.workers)
		r := by.Filter(&f.frame)
		if r.Reject != nil || r.Fallback == "closed" {
			c.tell(by, &r, before)
			return by, r
		}
		answers, _ = slices.BinarySearch(r.Order, int32(answers))
		f.keep(r.Order)
		c.tell(by, &r, before)
		if answers == 0 {
			c.nobody = true
			r.Reject = &host.Rejection{Status: 503,
				Text: fmt.Sprintf("the strategy %q leaves no worker that is up for this request", by.Name())}
			return by, r
		}
	}
	c.barred = bound && f.row(id) < 0
	c.only = worker.AllowedOf(&f.count, f.workers, f.frame.Rows)
	return nil, r
}

// fillAll gets the rows of all workers that are up, and behind them those of prefillers. It returns how many may
// answer.
func (c *Choice) fillAll(bound string) (answers int) {
	f, q := &c.fleet, c.query()
	q.Wide, q.Full, q.Bound = true, true, bound
	c.seen = f.fill(c.pool.Workers, q)
	answers = len(f.workers)
	if len(c.ask.Prefillers) > 0 {
		p := toPrefill(q, c.ask.Prefillers)
		p.Bound = ""
		f.add(c.pool.Workers, p)
	}
	h := &f.frame.Header
	describe(&f.frame, c.pool, &c.ask, c.stay.name.Tenant, c.sessionID())
	h.Configured, h.Up, h.PromptTokens = uint32(f.count.Configured), uint32(f.count.Up), uint32(c.size.all)
	h.Bound = int32(f.row(bound))
	return answers
}

// known returns the standing of the workers that the filters have left. If none is left, the reason is that of before.
func (c *Choice) known(s worker.Standing) worker.Standing {
	if s != worker.Fenced || c.only == nil {
		return s
	}
	if c.seen == worker.Ready || c.seen == worker.Panicked { // they have gone since
		return worker.Down
	}
	return c.seen
}

// turnAway makes a filter's rejection the decision.
func (c *Choice) turnAway(by *host.Strategy, r host.Result) {
	r.Row, r.Order = -1, nil
	if r.Reject == nil { // the filter was closed
		r.Reject = &host.Rejection{Status: 503}
	}
	c.strategy = by
	c.result = r
	c.only = new(worker.Allowed)
	c.fleet.keep(nil)
	c.order.begin(&c.result, &c.fleet)
}

// maxTold is how many workers a sentence on a filter names.
const maxTold = 8

// tell notes what a filter has made of so many workers.
func (c *Choice) tell(by *host.Strategy, r *host.Result, of int) {
	left := c.fleet.frame.WorkerIDs
	said := fmt.Sprintf("%s left %s of %d", by.Name(), strings.Join(left[:min(len(left), maxTold)], " "), of)
	switch more := len(left) - maxTold; {
	case r.Fallback != "":
		said = by.Name() + " failed: " + r.Fallback
	case r.Reject != nil:
		said = by.Name() + " rejected the request"
	case len(left) == of, len(left) == 0:
		said = fmt.Sprintf("%s left %d of %d", by.Name(), len(left), of)
	case more > 0:
		said += fmt.Sprintf(", and %d more", more)
	}
	if r.Reason != 0 {
		said += ": " + c.reasonOf(by, r.Reason)
	}
	c.said = append(c.said, said)
}

// reasonOf returns a strategy's reason in words.
func (c *Choice) reasonOf(s *host.Strategy, code uint16) string {
	if name := s.ReasonName(code); name != "" {
		return name
	}
	return c.pool.reason(s.Name(), code)
}
