package peers

import (
	"sync"
	"time"

	"github.com/warmpath/warmpath/daemon/route"
)

// leastKept and mostKept bound the entries that a stream keeps, whatever their size.
const leastKept, mostKept = 1000, 1 << 20

// Member is one pool whose history is shared.
type Member struct {
	name   string
	stream string
	pool   *route.Pool
	chains *chains
	teller *Teller
	hearer *Hearer

	mu       sync.Mutex // guards all below
	at       string     // id of the newest entry that was heard; "" = none yet
	live     bool       // what was there before is known
	refuses  bool       // Redis takes nothing for the stream
	deaf     bool       // Redis does not let it be read
	until    time.Time  // the stream was read up to
	seen     uint64     // entries, and
	size     uint64     // their bytes
	beats    int
	digest   uint64    // of the workers as last told
	aged     time.Time // when the last generation of chains began
	restarts time.Time // when chains were last told in full because another asked
	progress Progress
	warned   map[string]time.Time // what log lines were about
}

// Progress is how far a replay has come.
type Progress struct {
	Messages int // found in the stream
	Done     int // of them applied
	Took     time.Duration
	Live     bool // it is over
}

// joins reports whether what was there before is to be read.
func (m *Member) joins() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return !m.live && !m.deaf
}

// listens reports whether what is new is to be read.
func (m *Member) listens() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.live && !m.deaf
}

// refused returns what Redis refuses of the stream.
func (m *Member) refused() (writes, reads bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.refuses, m.deaf
}

func (m *Member) position() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.at == "" {
		return "0-0"
	}
	return m.at
}

func (m *Member) heard(e entry, sent time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.at = e.id
	m.seen++
	m.size += uint64(len(e.frame))
	if sent.After(m.until) {
		m.until = sent
	}
}

// caughtUp notes that nothing was told before then that was not read.
func (m *Member) caughtUp(at time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.until = at
}

func (m *Member) heardUntil() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.until
}

// skip goes on after an id, if that is further on.
func (m *Member) skip(id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if less(m.at, id) {
		m.at = id
	}
}

// wrote notes the id that Redis gave to what this router told. One that is before what was heard is of another stream:
// Redis has lost the old one, and its clock was set back or another server took over.
func (m *Member) wrote(id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.refuses = false
	if m.live && m.at != "" && less(id, m.at) {
		m.live, m.at = false, ""
	}
}

// rejoin has the stream read again from as far back as a router that starts would. What was believed is passed over.
func (m *Member) rejoin() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.live, m.at = false, ""
}

func (m *Member) reading(n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.progress = Progress{Messages: n}
}

func (m *Member) replayed(n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.progress.Done = n
}

func (m *Member) joined(began time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.live, m.progress.Live, m.progress.Took = true, true, time.Since(began)
	m.until = began
}

// keeps is how many entries the stream keeps for it to have about so many bytes.
func (m *Member) keeps(bytes int) int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	mean := uint64(512)
	if m.seen > 0 {
		mean = max(64, m.size/m.seen+64) // what Redis adds to an entry
	}
	return int64(min(mostKept, max(leastKept, uint64(bytes)/mean)))
}

// holds is about how many bytes of messages tell what the pool's workers hold: 8 for a hash, and as much for the rest,
// twice over, as prompts that are held are told of more than once.
func (m *Member) holds() (bytes int) {
	for _, s := range m.pool.Workers.Stats(time.Now()) {
		bytes += 32 * m.pool.Index.Worker(s.Slot).Capacity
	}
	return bytes
}
