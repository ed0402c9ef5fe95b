package operator

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/warmpath/warmpath/daemon/admin/readiness"
	"github.com/warmpath/warmpath/daemon/request/session"
)

// PoolSessions is a pool in the answer of /api/v1/sessions: the sessions in this router's memory. Another router with
// the same Redis may have more.
type PoolSessions struct {
	Pool    string           `json:"pool"`
	Workers []WorkerSessions `json:"workers"`
	List    []session.Entry  `json:"sessions"`
	Cut     bool             `json:"cut"` // List is incomplete
}

// WorkerSessions counts the live sessions of a worker.
type WorkerSessions struct {
	Worker    string `json:"worker"`
	Opened    int    `json:"opened"`    // by NEW_SESSION or POST /sessions
	Keys      int    `json:"keys"`      // named by clients, or by a cookie
	Responses int    `json:"responses"` // stored responses
}

// Bounds of ?limit=.
const (
	someSessions = 100
	mostSessions = 10_000
)

// sessionsPage answers GET /api/v1/sessions?worker=ID&limit=N.
func sessionsPage(c *fiber.Ctx, pools []*readiness.Pool) error {
	limit, err := strconv.Atoi(c.Query("limit", strconv.Itoa(someSessions)))
	if err != nil || limit < 0 || limit > mostSessions {
		return c.Status(fiber.StatusBadRequest).JSON(fiber.Map{
			"error": "limit must be a number from 0 to " + strconv.Itoa(mostSessions)})
	}
	now, worker := time.Now(), c.Query("worker")
	out := []PoolSessions{}
	for _, p := range pools {
		out = append(out, describeSessions(p, worker, limit, now))
	}
	return c.JSON(out)
}

// describeSessions counts a pool's live sessions, and lists up to limit of them; with a worker only that worker's.
func describeSessions(p *readiness.Pool, worker string, limit int, now time.Time) PoolSessions {
	s := PoolSessions{Pool: p.Name, Workers: []WorkerSessions{}, List: p.Sessions.List(worker, limit, now)}
	live := p.Sessions.Live(now)
	all := 0
	for _, w := range slices.Sorted(maps.Keys(live)) {
		if worker == "" || w == worker {
			n := live[w]
			s.Workers = append(s.Workers, WorkerSessions{Worker: w, Opened: n[session.Opened], Keys: n[session.Key],
				Responses: n[session.Response]})
			all += n[session.Opened] + n[session.Key] + n[session.Response]
		}
	}
	slices.SortFunc(s.List, func(a, b session.Entry) int {
		return cmp.Or(cmp.Compare(a.Worker, b.Worker), a.Created.Compare(b.Created),
			cmp.Compare(a.Fingerprint, b.Fingerprint))
	})
	s.Cut = len(s.List) < all
	return s
}
