package peers

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/warmpath/warmpath/cache/parts/goredis"
)

// maxWarned bounds the log lines that a Member remembers in order to write each at most once a minute.
const maxWarned = 1000

// warningDue reports whether a log line about something is due, and records that it is written.
func (m *Member) warningDue(about string, now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.warned == nil || len(m.warned) >= maxWarned {
		m.warned = map[string]time.Time{}
	}
	if now.Sub(m.warned[about]) < time.Minute {
		return false
	}
	m.warned[about] = now
	return true
}

// logRefused logs why a message was refused.
func (m *Member) logRefused(log *slog.Logger, e message, err error, now time.Time) {
	if err == nil {
		return
	}
	var what, remedy string
	switch {
	case errors.Is(err, errVersion):
		what, remedy = "another release", "they share nothing until all run the same release"
	case errors.Is(err, errSecret):
		what, remedy = "another secret", "give all routers the same [history] secret_file, or none"
	case errors.Is(err, errFlood):
		what, remedy = "too much", "look what that router does; its messages are dropped meanwhile"
	case errors.Is(err, errMany):
		what, remedy = "too many routers", "their messages are dropped"
	default:
		what, remedy = "no message", "keep others from writing to the stream"
	}
	if m.warningDue(what, now) {
		log.Warn("history: messages are refused", "pool", m.name, "stream", m.stream, "entry", e.id, "why", err,
			"remedy", remedy)
	}
}

// markWriteRefused records and logs that Redis refuses writes to the stream.
func (m *Member) markWriteRefused(log *slog.Logger, err error, now time.Time) {
	m.refuse(log, "history: Redis accepts no messages of a pool: other routers receive none", &m.writeRefused, err, now)
}

// markReadRefused records and logs that Redis refuses reads of the stream.
func (m *Member) markReadRefused(log *slog.Logger, err error, now time.Time) {
	m.refuse(log, "history: the messages of other routers about a pool cannot be read", &m.readRefused, err, now)
}

func (m *Member) refuse(log *slog.Logger, what string, refused *bool, err error, now time.Time) {
	m.mu.Lock()
	*refused = true
	m.mu.Unlock()
	if m.warningDue(what, now) {
		log.Warn(what, "pool", m.name, "stream", m.stream, "err", err, "remedy", goredis.Remedy(err))
	}
}

// clearReadRefused lets the router read the stream again.
func (m *Member) clearReadRefused() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.readRefused = false
}

// logUnreadable counts and logs an entry that is too large to be read.
func (m *Member) logUnreadable(log *slog.Logger, id string) {
	m.receiver.countUnreadable()
	m.logRefused(log, message{id: id}, errLarge, time.Now())
}

// logDifferences logs which workers of the pool other routers name differently, and which only one of the routers has.
func (m *Member) logDifferences(log *slog.Logger, now time.Time) {
	own := named(m.pool, m.pool.Secret(), now)
	digest := sum(own)
	for _, r := range m.receiver.Routers(now) {
		if !r.Alive || r.digest == digest || r.Workers == 0 || !m.differsForLong(r, digest, now) {
			continue
		}
		d := differ(own, r.workers)
		if len(d.named) > 0 && m.warningDue("named "+r.ID, now) {
			log.Warn("history: another router names the same worker differently, so neither knows what the other sends "+
				"there: give it the same id in both files", "pool", m.name, "router", r.Name,
				"workers", strings.Join(d.named, ", "))
		}
		if len(d.moved) > 0 && m.warningDue("moved "+r.ID, now) {
			log.Warn("history: another router has another URL for a worker's id, so what it sends there does not count here: "+
				"give the worker the same URL in both files, or another id", "pool", m.name, "router", r.Name,
				"workers", strings.Join(d.moved, ", "))
		}
		if len(d.theirs)+len(d.ours) > 0 && !m.pool.Workers.IsPart() && m.warningDue("other workers "+r.ID, now) {
			log.Warn("history: another router has other workers in this pool: what is sent to those is not known here",
				"pool", m.name, "router", r.Name, "only_there", strings.Join(d.theirs, ", "),
				"only_here", strings.Join(d.ours, ", "))
		}
	}
}

// settleFor is how long two routers may have different workers before logDifferences logs it: a file that both read
// reaches them one after the other.
const settleFor = 5 * time.Second

// differsForLong reports whether a router has had the same other workers for settleFor.
func (m *Member) differsForLong(r Router, own uint64, now time.Time) bool {
	about := fmt.Sprintf("differs %s %x %x", r.ID, r.digest, own)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.warned == nil || len(m.warned) >= maxWarned {
		m.warned = map[string]time.Time{}
	}
	since, ok := m.warned[about]
	if !ok {
		m.warned[about] = now
		return false
	}
	return now.Sub(since) >= settleFor
}

// maxNames bounds the names in one log line.
const maxNames = 16

// difference lists how the workers of two routers differ.
type difference struct {
	named        []string // one address under two ids
	moved        []string // ids that have two addresses
	theirs, ours []string // ids that only one router has
}

func differ(own, other []Named) (d difference) {
	byAddress, byKey := map[uint64]Named{}, map[uint64]Named{}
	for _, n := range own {
		byAddress[n.Address], byKey[n.Key] = n, n
	}
	ours := maps.Clone(byKey)
	for _, n := range other {
		there, known := byAddress[n.Address]
		here, same := byKey[n.Key]
		switch {
		case same && here.Address != n.Address:
			d.moved = append(d.moved, n.ID)
		case !same && !known:
			d.theirs = append(d.theirs, n.ID)
		}
		if known && there.Key != n.Key {
			d.named = append(d.named, fmt.Sprintf("%s here is %s there", there.ID, n.ID))
		}
		delete(ours, n.Key)
		delete(ours, there.Key)
	}
	for _, n := range ours {
		d.ours = append(d.ours, n.ID)
	}
	for _, l := range []*[]string{&d.named, &d.moved, &d.theirs, &d.ours} {
		slices.Sort(*l)
		*l = (*l)[:min(len(*l), maxNames)]
	}
	return d
}
