package spill

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/warmpath/warmpath/cache/kvstore"
	"github.com/warmpath/warmpath/cache/kvstore/catalog"
	"github.com/warmpath/warmpath/cache/parts/bounded"
	"github.com/warmpath/warmpath/cache/parts/seldom"
)

// Config sets where values are kept, and how many.
type Config struct {
	Dir      string          // created if it does not exist; no other daemon may use it
	MaxBytes int64           // of the files together
	MaxQueue int64           // of values that wait to be written, or of a single one; they stay in memory. Default 64 MiB
	Losses   *kvstore.Losses // notes the keys that leave the disk without a Delete; nil = not needed
	Log      *slog.Logger    // default slog.Default()
}

// MinBytes is the smallest useful disk: a segment holds a value of a few megabytes.
const MinBytes = 64 << 20

const (
	segments  = 8               // number of segments; the oldest one goes as a whole
	maxJobs   = 4096            // values that wait to be written
	pauseTime = 5 * time.Second // after an error of the disk
)

// Disk is a kvstore.Backing. Run writes; Close ends it.
type Disk struct {
	config Config
	lock   *os.File
	jobs   bounded.Queue[*job]

	mu       sync.Mutex // guards all below
	index    map[string]extent
	keys     *catalog.Catalog // of index, in order
	pending  map[string]*job
	dead     []extent // records to mark as dead
	segments []*segment
	next     uint64
	queued   int64
	paused   time.Time
	stats    Stats

	limit    int64                // of the files' bytes: Config.MaxBytes, or the size of a smaller disk
	grows    time.Time            // when limit goes up again
	promised map[string]time.Time // keys promised by Exists, and until when
	attic    int64                // bytes of promised values whose segment is gone
	crowded  seldom.Line          // of promises that leave no room
	failing  seldom.Line          // of errors of the disk
	small    bool                 // a line has reported that the disk is smaller
}

// job is a value to be written.
type job struct {
	record record
	value  *kvstore.Lease
}

// Stats counts what the disk has done since the start, and describes its content.
type Stats struct {
	Values        int
	Bytes         int64  // of the files
	MaxBytes      int64  // the bound of Bytes
	Short         int64  // bytes that Config.MaxBytes has and a full disk had no room for
	Written, Read uint64 // values
	Skipped       uint64 // values that came faster than the disk writes, or while it was full, or too large for it
	Dropped       uint64 // values that were deleted with their segment
	Torn, Corrupt uint64 // segments with a torn end; values with a wrong checksum or a damaged header
	Failures      uint64 // errors of the disk
	Found         int    // values that the start found
}

// ErrHeld means that another process has the folder for now.
var ErrHeld = errors.New("another daemon spills there; give each its own folder")

// Open reads the folder and restores its values.
func Open(c Config) (*Disk, error) {
	if c.MaxBytes < MinBytes {
		return nil, fmt.Errorf("spill: %d bytes are too few; give at least %d", c.MaxBytes, MinBytes)
	}
	if c.MaxQueue <= 0 {
		c.MaxQueue = 64 << 20
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	d := &Disk{config: c, jobs: make(bounded.Queue[*job], maxJobs), index: map[string]extent{}, keys: catalog.New(0),
		pending: map[string]*job{}, limit: c.MaxBytes, promised: map[string]time.Time{}}
	if err := d.open(); err != nil {
		d.closeFiles()
		return nil, fmt.Errorf("spill: %s: %w", c.Dir, err)
	}
	return d, nil
}

func (d *Disk) open() (err error) {
	if err := os.MkdirAll(d.config.Dir, 0o700); err != nil {
		return err
	}
	d.lock, err = os.OpenFile(filepath.Join(d.config.Dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	if err := lockFolder(d.lock); err != nil {
		return err
	}
	numbers, err := segmentsOf(d.config.Dir)
	if err != nil {
		return err
	}
	for _, n := range numbers {
		if err := d.restore(segmentPath(d.config.Dir, n)); err != nil {
			return err
		}
		d.next = n + 1
	}
	d.stats.Found = len(d.index)
	return d.makeRoom(0)
}

// restore reads a segment of an earlier process.
func (d *Disk) restore(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	g := &segment{file: f, raw: openDirect(path), path: path, keys: map[string]struct{}{}}
	d.segments = append(d.segments, g)
	now := time.Now()
	s, err := scan(f, func(at int64, r record) {
		if old, ok := d.index[r.key]; ok {
			delete(old.segment.keys, r.key)
			d.remove(r.key)
		}
		if !r.over(now) {
			d.put(extent{segment: g, at: at, record: r})
		}
	})
	g.bytes = s.bytes
	if s.torn {
		d.stats.Torn++
		d.config.Log.Warn("a file of spilled values has a torn end, which was cut off", "file", path)
	}
	if s.damaged > 0 {
		d.stats.Corrupt += uint64(s.damaged)
		d.config.Log.Warn("a file of spilled values has damaged headers: the values behind them are misses", "file", path,
			"headers", s.damaged)
	}
	return err
}

func (d *Disk) put(p extent) {
	d.index[p.record.key] = p
	d.keys.Put(catalog.Item{Key: p.record.key, Size: p.record.size, Expires: p.record.expires})
	p.segment.keys[p.record.key] = struct{}{}
}

// Exists reports whether the disk has the key. If keep is a time, the disk keeps the value until then, or until Unkeep.
// In this case false can also mean that it cannot keep the value.
func (d *Disk) Exists(key string, keep time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	p, ok := d.find(key)
	if !ok || keep.IsZero() {
		return ok
	}
	until, promised := d.promised[key]
	if !promised && p.segment != nil && p.segment.leaving {
		return false
	}
	if keep.After(until) {
		d.promised[key] = keep
	}
	return true
}

// find returns the place of a readable value: an expired one is readable as long as a promise lasts. The caller holds
// mu.
func (d *Disk) find(key string) (extent, bool) {
	p, ok := d.index[key]
	now := time.Now()
	return p, ok && (!p.record.over(now) || now.Before(d.promised[key]))
}

// Unkeep ends a promise of Exists.
func (d *Disk) Unkeep(key string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.unkeep(key)
}

// Info returns the length and the end of a value. It implements kvstore.Informed.
func (d *Disk) Info(key string) (size int64, expires time.Time, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	p, ok := d.find(key)
	if !ok {
		return 0, time.Time{}, false
	}
	return p.record.size, p.record.expires, true
}

// Delete deletes the key. Run marks its record later.
func (d *Disk) Delete(key string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.forgetKey(key)
}

// forgetKey deletes a key, written or not. The caller holds mu.
func (d *Disk) forgetKey(key string) bool {
	delete(d.pending, key)
	delete(d.promised, key)
	p, ok := d.index[key]
	if ok {
		d.forget(p)
	}
	return ok
}

func (d *Disk) remove(key string) {
	delete(d.index, key)
	d.keys.Delete(key)
}

// MaxBytes returns the bound of the files' bytes: less than Config.MaxBytes on a disk that turned out to be smaller.
func (d *Disk) MaxBytes() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.limit
}

// Page lists keys in their order, as [catalog.Catalog.Page] does.
func (d *Disk) Page(prefix, after string, limit int) []catalog.Item {
	return d.keys.Page(prefix, after, limit)
}

// forget removes a value from the index, and queues its record to be marked.
func (d *Disk) forget(p extent) {
	d.remove(p.record.key)
	if p.segment == nil {
		d.attic -= p.record.size
		return
	}
	delete(p.segment.keys, p.record.key)
	d.dead = append(d.dead, p)
}

// Put queues a value to be written in place of the key's old one, or refuses it. It never waits.
func (d *Disk) Put(key string, expires time.Time, value *kvstore.Lease) (written <-chan struct{}, taken bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.forgetKey(key)
	r := record{state: live, key: key, size: value.Size(), expires: expires}
	if !d.accepts(&r) {
		d.stats.Skipped++
		return nil, false
	}
	d.enqueue(&job{record: r, value: value})
	return nil, true
}

// Rescue queues a value that was skipped when it was put, before memory evicts it. While writing pauses it does not
// return soon: the pause may last.
func (d *Disk) Rescue(key string, size int64, expires time.Time, lease func() *kvstore.Lease) (taken, soon bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	r := record{state: live, key: key, size: size, expires: expires}
	_, has := d.index[key]
	switch {
	case has || d.pending[key] != nil || !d.fits(&r):
		return false, false
	case !d.accepts(&r):
		return false, true
	}
	d.enqueue(&job{record: r, value: lease()})
	return true, false
}

// fits reports whether a value can be written at all. The caller holds mu.
func (d *Disk) fits(r *record) bool {
	return r.bytes() <= d.limit/segments && !time.Now().Before(d.paused)
}

// accepts reports whether the queue has room for the value, too. The caller holds mu.
func (d *Disk) accepts(r *record) bool {
	return d.fits(r) && (d.queued == 0 || d.queued+r.size <= d.config.MaxQueue) && len(d.jobs) < cap(d.jobs)
}

// enqueue queues a value that was accepted. The caller has held mu since then, so there is room in jobs.
func (d *Disk) enqueue(j *job) {
	d.pending[j.record.key] = j
	d.queued += j.record.size
	d.jobs <- j
}

// Get reads a value into the memory that room returns, and checks its sum.
func (d *Disk) Get(ctx context.Context, key string, room kvstore.Place) (bool, error) {
	d.mu.Lock()
	p, ok := d.index[key]
	if ok && p.segment != nil {
		p.segment.refs++
	}
	d.mu.Unlock()
	if !ok {
		return false, nil
	}
	err := d.read(ctx, p, room)
	d.mu.Lock()
	defer d.mu.Unlock()
	if p.segment != nil {
		p.segment.refs--
		p.segment.close()
	}
	switch {
	case err == nil:
		d.stats.Read++
	case errors.Is(err, errCorrupt):
		d.stats.Corrupt++
		if now, ok := d.index[key]; ok && now == p {
			d.forget(p)
			d.config.Losses.Note(key)
		}
		d.config.Log.Warn("a spilled value is not what was written: it is a miss", "file", p.segment.path, "error", err)
	}
	return err == nil, err
}

var errCorrupt = errors.New("the bytes do not fit the checksum")

func (d *Disk) read(ctx context.Context, p extent, room kvstore.Place) error {
	pieces, err := room(kvstore.Arrival{Size: p.record.size, Expires: p.record.expires})
	if err != nil {
		return err
	}
	if p.saved != nil {
		rest := *p.saved
		for _, to := range pieces {
			rest = rest[copy(to, rest):]
		}
		return nil
	}
	if err := p.segment.read(ctx, p.at+p.record.head(), pieces); err != nil {
		return err
	}
	if sumOf(p.record.key, pieces) != p.record.sum {
		return errCorrupt
	}
	return nil
}

// Stats returns the counts.
func (d *Disk) Stats() Stats {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.stats
	s.Values, s.MaxBytes, s.Bytes, s.Short = len(d.index), d.limit, d.bytes(), d.config.MaxBytes-d.limit
	return s
}

func (d *Disk) closeFiles() {
	for _, g := range d.segments {
		g.closeFiles()
	}
	if d.lock != nil {
		d.lock.Close()
	}
}

var (
	_ kvstore.Backing  = (*Disk)(nil)
	_ kvstore.Informed = (*Disk)(nil)
	_ kvstore.Keeper   = (*Disk)(nil)
	_ kvstore.Rescuer  = (*Disk)(nil)
)
