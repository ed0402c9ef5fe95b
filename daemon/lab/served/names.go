package served

import (
	"strconv"

	"github.com/warmpath/warmpath/daemon/lab/trial"
	"github.com/warmpath/warmpath/daemon/request/route"
	"github.com/warmpath/warmpath/daemon/request/session"
)

// Names is what the router makes of the names of sessions.
type Names uint8

// The values of Names.
const (
	Hints   Names = iota // for strategies, as by default
	Binding              // a session stays at its worker: [sessions] bind = "always"
	Unread               // nothing
)

// claim names a request's session, and the one that began it.
func (n Names) claim(q *trial.Request) (c route.Claim) {
	if q.Session == 0 || n == Unread {
		return c
	}
	c.Binds = n == Binding
	c.Key = session.Name{Kind: session.Key, ID: strconv.FormatUint(q.Session, 36)}
	if q.Parent != 0 {
		c.Parent = strconv.FormatUint(q.Parent, 36)
	}
	return c
}
