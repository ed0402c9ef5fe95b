package peers

import (
	"sync"
	"time"

	"github.com/warmpath/warmpath/daemon/request/route"
)

// leastKept and mostKept bound the number of entries that a stream keeps, whatever their size.
const leastKept, mostKept = 1000, 1 << 20

// Member is one pool whose history this router shares.
type Member struct {
	name     string
	stream   string
	pool     *route.Pool
	chains   *chains
	sender   *Sender
	receiver *Receiver

	mu           sync.Mutex // guards all below
	at           string     // id of the newest entry applied; "" = none yet
	live         bool       // the older entries have been applied
	writeRefused bool       // Redis refuses writes to the stream
	readRefused  bool       // Redis refuses reads of the stream
	until        time.Time  // up to when the stream was read
	seen         uint64     // entries read, and
	size         uint64     // their bytes
	beats        int
	digest       uint64    // of the workers in the last beat
	aged         time.Time // when the last generation of chains began
	restarts     time.Time // when chains were last sent in full at another router's request
	progress     Progress
	warned       map[string]time.Time // when a log line was last written, by its subject
}

// Progress describes how far a replay has come.
type Progress struct {
	Messages int     `json:"messages"` // found in the stream
	Done     int     `json:"done"`     // of them applied
	Live     bool    `json:"over"`
	Seconds  float64 `json:"seconds"`
}

// replayPending reports whether the stream's older entries have still to be read.
func (m *Member) replayPending() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return !m.live && !m.readRefused
}

// readsNew reports whether the stream's new entries are to be read.
func (m *Member) readsNew() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.live && !m.readRefused
}

// refused returns whether Redis refuses writes to the stream, and reads of it.
func (m *Member) refused() (writes, reads bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.writeRefused, m.readRefused
}

func (m *Member) readAfter() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.at == "" {
		return "0-0"
	}
	return m.at
}

func (m *Member) recordRead(e message, sent time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.at = e.id
	m.seen++
	m.size += uint64(len(e.frame))
	if sent.After(m.until) {
		m.until = sent
	}
}

// caughtUp records that every entry added before that time was read.
func (m *Member) caughtUp(at time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.until = at
}

func (m *Member) readUntil() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.until
}

// skipTo moves the reading position to an id, unless the position is already further.
func (m *Member) skipTo(id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if less(m.at, id) {
		m.at = id
	}
}

// recordWritten records the id that Redis gave to a frame of this router. An id before the newest applied entry belongs
// to a new stream: Redis has lost the old one, and its clock was set back or another server took over.
func (m *Member) recordWritten(id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.writeRefused = false
	if m.live && m.at != "" && less(id, m.at) {
		m.live, m.at = false, ""
	}
}

// replayAgain makes the router read the stream again, from as far back as a router that starts. The frames applied
// before count as repeated.
func (m *Member) replayAgain() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.live, m.at = false, ""
}

func (m *Member) setFound(n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.progress = Progress{Messages: n}
}

func (m *Member) setReplayed(n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.progress.Done = n
}

func (m *Member) endReplay(began time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.live, m.progress.Live, m.progress.Seconds = true, true, time.Since(began).Seconds()
	m.until = began
}

// entriesToKeep returns how many entries the stream has to keep for about so many bytes.
func (m *Member) entriesToKeep(bytes int) int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	mean := uint64(512)
	if m.seen > 0 {
		mean = max(64, m.size/m.seen+64) // Redis adds 64 bytes to an entry
	}
	return int64(min(mostKept, max(leastKept, uint64(bytes)/mean)))
}

// heldBytes estimates the bytes of messages that describe what the pool's workers hold: 8 for a hash and as much for
// the rest, twice over, since a held prompt appears in more than one message.
func (m *Member) heldBytes() (bytes int) {
	for _, s := range m.pool.Workers.Stats(time.Now()) {
		bytes += 32 * m.pool.Index.Worker(s.Slot).Capacity
	}
	return bytes
}
