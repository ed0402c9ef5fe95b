package remote

import (
	"sync/atomic"
	"time"

	"github.com/warmpath/warmpath/cache/kvstore"
)

// counts are the counts of a Remote.
type counts struct {
	hits, misses, getsDown, getErrors atomic.Uint64
	puts, crowded, skipped, putErrors atomic.Uint64
	oom, readOnly, login, other       atomic.Uint64
	read, written                     atomic.Uint64
	promotions, probes, heard         atomic.Uint64
	undeleted, copied                 atomic.Uint64
}

func (c *counts) refused(why refusal) {
	map[refusal]*atomic.Uint64{refusedOOM: &c.oom, refusedReadOnly: &c.readOnly, refusedLogin: &c.login,
		refusedOther: &c.other}[why].Add(1)
}

// Stats has counts since the start, and the present state.
type Stats struct {
	Backend string // "redis" or "tieredstorage"

	Hits, Misses         uint64            // of Get
	GetsDown, GetErrors  uint64            // of Get: its server was down; it did not answer, or with an error
	Puts                 uint64            // values that the servers took
	Crowded              uint64            // values not sent: the queue is full
	Skipped              uint64            // values not sent: the server is down or refusing, or their time is over
	PutErrors            uint64            // values without an answer from their server
	Refused              map[string]uint64 // values that a server refused: oom, read_only, login, other
	BytesRead, BytesSent uint64            // of values
	Promotions           uint64            // values from the servers that memory keeps
	Probes, Heard        uint64            // keys queried in the background; keys in messages of other daemons
	Undeleted            uint64            // deletions that could not be sent to the servers
	Copied               uint64            // values in pieces of the arena, which took one more copy

	Known   int   // keys with a fact
	Queued  int64 // bytes on their way to the servers
	Servers []ServerStats
}

// ServerStats describes one server.
type ServerStats struct {
	Address string
	Self    bool // this daemon
	Up      bool
	Opens   uint64        // how often it was found down
	DownFor time.Duration // 0 = it is up
	Refuses string        // why it takes no value; "" = it does
}

// Unwritten returns how many values were put and did not come to the servers.
func (s *Stats) Unwritten() uint64 {
	n := s.Crowded + s.Skipped + s.PutErrors
	for _, refused := range s.Refused {
		n += refused
	}
	return n
}

// Stats returns the counts.
func (r *Remote) Stats() Stats {
	c := &r.counts
	s := Stats{Backend: "redis", Hits: c.hits.Load(), Misses: c.misses.Load(), GetsDown: c.getsDown.Load(),
		GetErrors: c.getErrors.Load(), Puts: c.puts.Load(), Crowded: c.crowded.Load(), Skipped: c.skipped.Load(),
		PutErrors: c.putErrors.Load(),
		Refused: map[string]uint64{string(refusedOOM): c.oom.Load(), string(refusedReadOnly): c.readOnly.Load(),
			string(refusedLogin): c.login.Load(), string(refusedOther): c.other.Load()},
		BytesRead: c.read.Load(), BytesSent: c.written.Load(), Promotions: c.promotions.Load(), Probes: c.probes.Load(),
		Heard: c.heard.Load(), Undeleted: c.undeleted.Load(), Copied: c.copied.Load(),
		Known: r.index.length(), Queued: r.queue.waiting()}
	if r.servers.kind == pool {
		s.Backend = "tieredstorage"
	}
	s.Servers = r.servers.stats()
	return s
}

// MaxBytes returns how many bytes of values the servers keep at most, by their own figures; 0 = that is not known.
func (r *Remote) MaxBytes() int64 { return r.servers.size.Load() }

// SetMembers replaces the members of a pool: members that are in both lists keep their values.
func (r *Remote) SetMembers(members []string) { r.servers.setMembers(members) }

var (
	_ kvstore.Backing = (*Remote)(nil)
	_ kvstore.Sure    = (*Remote)(nil)
)
