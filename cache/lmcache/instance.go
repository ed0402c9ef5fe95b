package lmcache

import (
	"net"
	"strconv"
	"sync/atomic"
	"time"
)

// instance is one LMCache: the ranks of a vLLM worker that share an instance_id, or a multi-process server. What is not
// atomic is guarded by the lock of the fleet.
type instance struct {
	id     string
	number uint32 // dense: the row of a query
	server bool   // a multi-process server, which reports to the coordinator

	need    atomic.Uint64           // the ranks that must hold a chunk, a bit each
	live    atomic.Bool             // its view may be believed
	variant atomic.Pointer[Variant] // nil until known
	model   atomic.Uint64           // goes into the keys of a server, which may hold several models

	admits atomic.Uint64 // since it registered

	ranks map[int]*rank
	since time.Time
	gaps  []time.Time
	why   trouble   // why the view is not believed, other than missing signs of life
	until time.Time // and when that is over

	heard       time.Time // of a server: its last sign of life
	ip, from    string    // of a server
	incarnation int64     // of a server: when it started
	seq         int64     // and the last batch that it sent since

}

// trouble is why the view of an instance is not believed.
type trouble string

const (
	none     trouble = ""
	flooded  trouble = "flooded"  // it admits more chunks than fit
	conflict trouble = "conflict" // two workers report under its name
	unstable trouble = "unstable" // gap after gap
	silent   trouble = "silent"   // its heartbeats or its connection are gone
)

// rank is one worker of an instance, by its worker_id.
type rank struct {
	number  int
	ip      string // as it reports it
	address string // with its port
	from    string // the host that its connection comes from
	conn    uint64 // on which it reported last
	peerURL string

	since    time.Time // registered
	heard    time.Time // any message
	beat     time.Time // last heartbeat
	interval time.Duration
	asks     uint64 // the fleet's, when it registered
	reported bool   // something beside RegisterMsg has come
	lost     bool   // heartbeats or connection are gone

	streams map[string]*stream // by location
	sync    *fullSync
	want    string    // why a full sync is to be asked for
	asked   time.Time // when it was
}

// tier is where a chunk is, as far as choosing a worker is concerned.
type tier uint8

const (
	local  tier = iota // the worker's own memory or disk
	remote             // a store behind it that this instance alone reaches
	shared             // a store that all instances reach
)

// seat is one place that holds chunks: a rank of an instance and a location. Clearing a seat is one addition, since a
// chunk entered under an older generation does not count.
type seat struct {
	number   uint32
	instance *instance
	rank     uint8
	tier     tier
	location string
	gen      atomic.Uint32
	keys     atomic.Int64
}

// clear forgets all chunks of the seat.
func (s *seat) clear() {
	s.gen.Add(1)
	s.keys.Store(0)
}

// stream is what one rank reports of one location.
type stream struct {
	seat *seat
	next int64 // the sequence number that comes next; noSeq before the first
}

// tierOf returns how near a location is. The names are those of LMCache's storage backends.
func tierOf(location string) tier {
	if location == "LocalCPUBackend" || location == "LocalDiskBackend" {
		return local
	}
	return remote
}

func hostPort(ip string, port int) string { return net.JoinHostPort(ip, strconv.Itoa(port)) }

// keys counts the entries of all seats.
func (i *instance) keys() (n int64) {
	for _, r := range i.ranks {
		for _, s := range r.streams {
			n += s.seat.keys.Load()
		}
	}
	return n
}

// judge sets live from what is known.
func (i *instance) judge() {
	ok := (len(i.ranks) > 0 || i.server) && i.why == none
	for _, r := range i.ranks {
		ok = ok && !r.lost
	}
	i.live.Store(ok)
}

// lastHeard returns the last sign of life, and whether the instance is known to have gone.
func (i *instance) lastHeard() (at time.Time, lost bool) {
	at = i.heard
	lost = !i.server || !i.live.Load()
	for _, r := range i.ranks {
		if r.heard.After(at) {
			at = r.heard
		}
		lost = lost && (r.lost || i.server)
	}
	return at, lost
}

// sign notes a sign of life.
func (r *rank) sign(from string, now time.Time) {
	r.heard, r.lost = now, false
	if from != "" {
		r.from = from
	}
}

// overdue reports whether r has sent heartbeats and then three have not come.
func (r *rank) overdue(now time.Time) bool {
	return r.interval > 0 && now.Sub(r.heard) > max(3*r.interval, minOverdue)
}

// minOverdue is production-stack's worker timeout.
const minOverdue = 30 * time.Second
