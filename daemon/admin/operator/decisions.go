package operator

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/warmpath/warmpath/daemon/admin/decisions"
	"github.com/warmpath/warmpath/daemon/transport/gate"
)

// Bounds of the answers about decisions. A decision on 64 workers is some 20 KB of JSON.
const (
	someDecisions = 50
	mostDecisions = 1000
	mostViewers   = 16 // of live decisions at a time
	mostAtOnce    = 20 // decisions in one event to a viewer; older ones are counted
)

// The interval between two reads of the ring for a viewer, the silence after which it gets a keepalive, and the time
// after which a viewer that reads nothing is disconnected.
const (
	lookEvery = 200 * time.Millisecond
	beatEvery = 10 * time.Second
	takeWait  = 10 * time.Second
)

// decided serves the decisions of the ring.
type decided struct {
	ring    *decisions.Ring
	viewing atomic.Int32  // viewers of live decisions
	began   time.Time     // when the server was made
	over    chan struct{} // closed when the server ends
	once    sync.Once     // closes it
}

// list answers GET /api/v1/decisions: the last ones, or with Accept: text/event-stream the coming ones.
func (s *decided) list(c *fiber.Ctx) error {
	q, err := decisionQuery(c)
	if err != nil {
		return c.Status(fiber.StatusBadRequest).JSON(fiber.Map{"error": err.Error()})
	}
	if strings.Contains(c.Get("Accept"), "text/event-stream") {
		return s.follow(c, q)
	}
	list := s.ring.Latest(q)
	if list == nil {
		list = []decisions.Decision{}
	}
	return c.JSON(list)
}

// decisionQuery parses ?pool=&worker=&model=&key=&slower=2s&open=1&failed=1&limit=50.
func decisionQuery(c *fiber.Ctx) (q decisions.Query, err error) {
	q = decisions.Query{Pool: copied(c, "pool"), Worker: copied(c, "worker"), Model: copied(c, "model"),
		Key: copied(c, "key"), Open: c.QueryBool("open"), Failed: c.QueryBool("failed")}
	q.Limit, err = strconv.Atoi(c.Query("limit", strconv.Itoa(someDecisions)))
	if err != nil || q.Limit < 0 || q.Limit > mostDecisions {
		return q, fmt.Errorf("limit must be a number from 0 to %d", mostDecisions)
	}
	if slower := c.Query("slower"); slower != "" {
		q.Slower, err = time.ParseDuration(slower)
		if err != nil || q.Slower < 0 {
			return q, fmt.Errorf("slower must be a duration, as 2s or 250ms")
		}
	}
	return q, nil
}

// copied returns a query parameter that outlives the request.
func copied(c *fiber.Ctx, name string) string { return strings.Clone(c.Query(name)) }

// one answers GET /api/v1/decisions/ID.
func (s *decided) one(c *fiber.Ctx) error {
	id, err := url.PathUnescape(c.Params("id"))
	d, ok := decisions.Decision{}, false
	if err == nil {
		d, ok = s.ring.Find(id)
	}
	if ok {
		return c.JSON(&d)
	}
	page := fiber.Map{"error": s.unknown(id, time.Now())}
	if stats := s.ring.Stats(); stats.Kept > 0 {
		page["oldest"] = stats.Oldest
	}
	return c.Status(fiber.StatusNotFound).JSON(page)
}

// unknown explains where a request may be found that the ring does not have.
func (s *decided) unknown(id string, now time.Time) string {
	if gate.RequestID(id) != id {
		return "no request has that id: one is 1 to 128 letters, digits and . _ : - . A client's X-Request-Id with " +
			"anything else is replaced; the answer's X-Request-Id has the id that took its place"
	}
	kept := "it keeps none"
	if oldest := s.ring.Stats().Oldest; !oldest.IsZero() {
		kept = fmt.Sprintf("the oldest that it keeps came %v ago", now.Sub(oldest).Round(time.Second))
	}
	return fmt.Sprintf("this process, which began %v ago, keeps no request of that id; %s. If it came before an "+
		"upgrade, it may be under way in the process before, which keeps its own; if it came before a restart, or to "+
		"another router, look there. The access log has each once it has ended: warmpath why --log FILE. If it came "+
		"here, newer ones have taken its place: server.decisions_bytes says how many are kept",
		now.Sub(s.began).Round(time.Second), kept)
}

// enter counts a viewer up, if there is room for one. The caller counts it down at the end.
func (s *decided) enter() bool {
	if s.viewing.Add(1) > mostViewers {
		s.leave()
		return false
	}
	return true
}

func (s *decided) leave() { s.viewing.Add(-1) }

// end ends the viewers.
func (s *decided) end() { s.once.Do(func() { close(s.over) }) }

// follow sends decisions as they are made and as their answers end, as server-sent events. An event "decisions" holds a
// list, the newest first, and left, the number of older ones for which the list had no room.
func (s *decided) follow(c *fiber.Ctx, q decisions.Query) error {
	if !s.enter() {
		return c.Status(fiber.StatusServiceUnavailable).JSON(fiber.Map{
			"error": fmt.Sprintf("%d viewers follow already; close one", mostViewers)})
	}
	recent := q
	q.Limit = mostAtOnce
	c.Set("Content-Type", "text/event-stream")
	c.Set("Cache-Control", "no-store")
	conn := c.Context().Conn()
	c.Context().SetBodyStreamWriter(func(w *bufio.Writer) {
		defer s.leave()
		f := follower{ring: s.ring, q: recent, w: w, conn: conn}
		if f.look() != nil { // the decisions so far
			return
		}
		f.q = q
		f.run(s.over)
	})
	return nil
}

// follower is one viewer.
type follower struct {
	ring   *decisions.Ring
	q      decisions.Query
	w      *bufio.Writer
	conn   net.Conn // to which the server copies what w gets
	change uint64   // the newest change that was sent
	begun  bool     // the first event was sent
}

// run sends changes until the client leaves or done is closed.
func (f *follower) run(done <-chan struct{}) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	last := time.Now()
	for {
		select {
		case <-done:
			return
		case now := <-tick.C:
			before := f.change
			err := f.look()
			if err == nil && f.change == before && now.Sub(last) >= beatEvery {
				_, _ = f.w.WriteString(": still here\n\n")
				err = f.flush()
				last = now
			}
			if f.change != before {
				last = now
			}
			if err != nil {
				return
			}
		}
	}
}

// look sends what has changed since the last look; the first one sends an event in any case. It returns an error if the
// client has left.
func (f *follower) look() error {
	list, change, left := f.ring.Since(f.change, f.q)
	f.change = change
	if len(list) == 0 && f.begun {
		return nil
	}
	if list == nil {
		list = []decisions.Decision{}
	}
	f.begun = true
	text, err := json.Marshal(map[string]any{"decisions": list, "left": left})
	if err != nil {
		return err
	}
	fmt.Fprintf(f.w, "event: decisions\ndata: %s\n\n", text)
	return f.flush()
}

// flush sends what was written. The connection fails if the client takes nothing of it for takeWait.
func (f *follower) flush() error {
	if err := f.conn.SetWriteDeadline(time.Now().Add(takeWait)); err != nil {
		return err
	}
	return f.w.Flush()
}
