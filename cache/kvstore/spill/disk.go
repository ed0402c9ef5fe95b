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
)

// Config says where values are kept, and how many.
type Config struct {
	Dir      string          // is made if it is not there; no other daemon may use it
	MaxBytes int64           // of the files together
	MaxQueue int64           // of values that wait to be written; they cannot be evicted meanwhile. Default 64 MiB
	Losses   *kvstore.Losses // notes the keys that leave the disk by themselves; nil = nobody wants to know
	Log      *slog.Logger    // default slog.Default()
}

// MinBytes is the least that a disk is worth: a segment holds a value of a few megabytes.
const MinBytes = 64 << 20

const (
	segments  = 8               // of the newest values; the oldest segment goes as a whole
	maxJobs   = 4096            // values that wait to be written
	pauseTime = 5 * time.Second // after an error of the disk
)

// Disk is a kvstore.Backing. Run writes; Close ends it.
type Disk struct {
	config Config
	lock   *os.File
	jobs   chan *job

	mu       sync.Mutex // guards all below
	index    map[string]place
	keys     *catalog.Catalog // of index, in order
	pending  map[string]*job
	dead     []place // to be marked
	segments []*segment
	next     uint64
	queued   int64
	paused   time.Time
	stats    Stats
}

// job is a value to be written.
type job struct {
	record record
	value  *kvstore.Lease
}

// Stats is what the disk has done since the start, and what it holds.
type Stats struct {
	Values        int
	Bytes         int64  // of the files
	MaxBytes      int64  // that they may have
	Written, Read uint64 // values
	Skipped       uint64 // values that came faster than the disk writes, or while it was full, or too large for it
	Dropped       uint64 // values that went with their segment
	Torn, Corrupt uint64 // segments with a torn end; values that are not what their checksum says
	Failures      uint64 // of the disk
	Found         int    // values that the start found
}

// ErrHeld says that the folder is another process's for now.
var ErrHeld = errors.New("another daemon spills there; give each its own folder")

// Open reads what stands in the folder.
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
	d := &Disk{config: c, jobs: make(chan *job, maxJobs), index: map[string]place{}, keys: catalog.New(0),
		pending: map[string]*job{}}
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
	return d.shrink(0)
}

// restore takes up a segment of an earlier process.
func (d *Disk) restore(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	g := &segment{file: f, raw: openDirect(path), path: path, keys: map[string]struct{}{}}
	d.segments = append(d.segments, g)
	now := time.Now()
	var torn bool
	g.bytes, torn, err = scan(f, func(at int64, r record) {
		if old, ok := d.index[r.key]; ok {
			delete(old.segment.keys, r.key)
			d.remove(r.key)
		}
		if !r.over(now) {
			d.put(place{segment: g, at: at, record: r})
		}
	})
	if torn {
		d.stats.Torn++
		d.config.Log.Warn("a file of spilled values has a torn end, which was cut off", "file", path)
	}
	return err
}

func (d *Disk) put(p place) {
	d.index[p.record.key] = p
	d.keys.Put(catalog.Item{Key: p.record.key, Size: p.record.size, Expires: p.record.expires})
	p.segment.keys[p.record.key] = struct{}{}
}

// shrink deletes the oldest segments until so many bytes more fit. A promise on one of them is an error.
func (d *Disk) shrink(more int64) error {
	total := more
	for _, g := range d.segments {
		total += g.bytes
	}
	for total > d.config.MaxBytes && len(d.segments) > 0 {
		g := d.segments[0]
		if time.Now().Before(g.keep) {
			return errors.New("the oldest values are promised to clients")
		}
		for key := range g.keys {
			d.remove(key)
			d.stats.Dropped++
			d.config.Losses.Note(key)
		}
		total -= g.bytes
		d.segments = d.segments[1:]
		g.gone = true
		_ = os.Remove(g.path) // else the next start finds it, and drops it again
		g.close()
	}
	return nil
}

// Exists reports whether the disk has the key. With a time it keeps the value until then.
func (d *Disk) Exists(key string, keep time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	p, ok := d.index[key]
	if !ok || p.record.over(time.Now()) {
		return false
	}
	if keep.After(p.segment.keep) {
		p.segment.keep = keep
	}
	return true
}

// Info returns the length and the end of a value, as kvstore.Informed.
func (d *Disk) Info(key string) (size int64, expires time.Time, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	p, ok := d.index[key]
	if !ok || p.record.over(time.Now()) {
		return 0, time.Time{}, false
	}
	return p.record.size, p.record.expires, true
}

// Delete forgets the key. Its record is marked later, by Run.
func (d *Disk) Delete(key string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.forgetKey(key)
}

// forgetKey deletes a key, written or not. The caller holds mu.
func (d *Disk) forgetKey(key string) bool {
	delete(d.pending, key)
	p, ok := d.index[key]
	if ok {
		d.forget(p)
		d.dead = append(d.dead, p)
	}
	return ok
}

func (d *Disk) remove(key string) {
	delete(d.index, key)
	d.keys.Delete(key)
}

// MaxBytes returns how many bytes the files may have.
func (d *Disk) MaxBytes() int64 { return d.config.MaxBytes }

// Page lists keys in their order, as [catalog.Catalog.Page] does.
func (d *Disk) Page(prefix, after string, limit int) []catalog.Item {
	return d.keys.Page(prefix, after, limit)
}

func (d *Disk) forget(p place) {
	d.remove(p.record.key)
	delete(p.segment.keys, p.record.key)
}

// Put takes a value to be written in place of what the key had, or not: it never waits.
func (d *Disk) Put(key string, expires time.Time, value *kvstore.Lease) (written <-chan struct{}, taken bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.forgetKey(key)
	j := &job{record: record{state: live, key: key, size: value.Size(), expires: expires}, value: value}
	if j.record.bytes() > d.config.MaxBytes/segments || d.queued+j.record.size > d.config.MaxQueue ||
		time.Now().Before(d.paused) {
		d.stats.Skipped++
		return nil, false
	}
	select {
	case d.jobs <- j:
	default:
		d.stats.Skipped++
		return nil, false
	}
	d.pending[key] = j
	d.queued += j.record.size
	return nil, true
}

// Get reads a value into the room that it is given, and checks it.
func (d *Disk) Get(ctx context.Context, key string, room kvstore.Place) (bool, error) {
	d.mu.Lock()
	p, ok := d.index[key]
	if ok {
		p.segment.refs++
	}
	d.mu.Unlock()
	if !ok {
		return false, nil
	}
	err := d.read(ctx, p, room)
	d.mu.Lock()
	defer d.mu.Unlock()
	p.segment.refs--
	p.segment.close()
	switch {
	case err == nil:
		d.stats.Read++
	case errors.Is(err, errCorrupt):
		d.stats.Corrupt++
		if now, ok := d.index[key]; ok && now == p {
			d.forget(p)
			d.dead = append(d.dead, p)
			d.config.Losses.Note(key)
		}
		d.config.Log.Warn("a spilled value is not what was written: it is a miss", "file", p.segment.path, "error", err)
	}
	return err == nil, err
}

var errCorrupt = errors.New("the bytes do not fit the checksum")

func (d *Disk) read(ctx context.Context, p place, room kvstore.Place) error {
	pieces, err := room(kvstore.Arrival{Size: p.record.size, Expires: p.record.expires})
	if err != nil {
		return err
	}
	if err := p.segment.read(ctx, p.at+p.record.head(), pieces); err != nil {
		return err
	}
	if sumOf(p.record.key, pieces) != p.record.sum {
		return errCorrupt
	}
	return nil
}

// Stats counts.
func (d *Disk) Stats() Stats {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.stats
	s.Values, s.MaxBytes = len(d.index), d.config.MaxBytes
	for _, g := range d.segments {
		s.Bytes += g.bytes
	}
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
)
