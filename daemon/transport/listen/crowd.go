package listen

import (
	"cmp"
	"slices"
	"time"
)

// A client that sends nothing has the server's read timeout for a request, and its idle timeout for another one. Who
// opens as many connections as there may be would keep everybody out for so long. So while hardly a place is left, a
// client that keeps the server waiting for so many looks (quiet) loses its connection to the next one: those that have
// never sent a request first, then those that have stopped in the middle of a body, then those that wait for their next
// request. Within each kind, those that have been silent for longest go first, and only as many as are needed to make
// room.
const quiet = 5 // seconds, for there is a look a second, see parkEvery

// How much room is kept, in parts of all places: less than scarce, and silent clients are let go until there is roomy.
const scarce, roomy = 16, 8

// silence is what a client keeps the server waiting for.
type silence int

const (
	stranger silence = iota // its first request; half a handshake or half a head may have come
	stopped                 // the rest of a body
	idle                    // another request
)

// silent is a client that keeps the server waiting.
type silent struct {
	conn  *Conn
	kind  silence
	since int64 // the look before which it began
}

// silenceOf returns for what a client keeps the server waiting, and since which look; 0 = it does not.
func silenceOf(c *Conn) silent {
	since := c.asked.Load()
	switch {
	case since == 0:
		return silent{conn: c, kind: stopped, since: c.reading.Load()}
	case c.shown.Load():
		return silent{conn: c, kind: idle, since: since}
	}
	return silent{conn: c, since: since}
}

// makeRoom lets silent clients go if hardly a place is left.
func (n *census) makeRoom(look int64) {
	n.mu.Lock()
	most, open, closed := n.most, n.open, n.closed
	n.mu.Unlock()
	if n.pressed.Swap(false) {
		n.letGo(n.silent(look, stopped), open/roomy)
	}
	if most > 0 && open >= most-most/scarce && !closed {
		n.letGo(n.silent(look, stranger, stopped, idle), open-most+most/roomy)
	}
}

// silent lists the connections whose clients have been quiet for long in one of these ways, those to be let go first at
// its begin.
func (n *census) silent(look int64, kinds ...silence) (all []silent) {
	n.parking.each(func(c *Conn) {
		s := silenceOf(c)
		if s.since != 0 && !c.closed.Load() && look-s.since >= quiet && slices.Contains(kinds, s.kind) {
			all = append(all, s)
		}
	})
	slices.SortFunc(all, func(a, b silent) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.since, b.since))
	})
	return all
}

// letGo ends the first connections of the list, and at least one.
func (n *census) letGo(all []silent, most int) {
	all = all[:min(len(all), max(1, most))]
	for _, s := range all {
		if silenceOf(s.conn) != s { // it has spoken since it was listed
			continue
		}
		if s.kind == idle {
			go s.conn.Close() // TLS says goodbye to its client, which may not read
			continue
		}
		hurry(s.conn)
	}
	if len(all) > 0 && n.roomLine.Due(time.Now(), warnEvery) {
		n.log.Warn("listen: silent clients lose their connections, as hardly a place is left for others; find who keeps "+
			"them, or raise the setting", "setting", n.limit, "connections", len(all))
	}
}

// hurry sets the deadline of the present read to the past, so that the server answers as it does a slow client.
func hurry(c *Conn) {
	past := time.Unix(1, 0)
	if c.tls != nil {
		_ = c.raw.SetReadDeadline(past) // of a closed connection: its read has ended
		return
	}
	c.readBy.cut(c.raw, past)
}

// cut ends a read that runs.
func (p *lazy) cut(conn interface{ SetReadDeadline(time.Time) error }, past time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reading {
		p.set = past
		_ = conn.SetReadDeadline(past)
	}
}
