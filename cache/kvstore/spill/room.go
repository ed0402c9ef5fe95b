package spill

import (
	"context"
	"errors"
	"os"
	"slices"
	"syscall"
	"time"
)

const (
	growEvery   = 10 * time.Minute // a disk that was full once may have room again
	promiseWait = time.Second      // until the next search for a segment that is not full of promises
	toldEvery   = time.Minute
)

// errPromised means that no segment can go: each has more promised values than can be saved.
var errPromised = errors.New("the values are promised to clients")

// isFull reports whether an error means that a disk, or a user's quota of it, is full.
func isFull(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }

// bytes returns how many bytes the files have. The caller holds mu.
func (d *Disk) bytes() (total int64) {
	for _, g := range d.segments {
		total += g.bytes
	}
	return total
}

// makeRoom deletes segments until more bytes fit.
func (d *Disk) makeRoom(more int64) error {
	for {
		d.mu.Lock()
		enough := d.bytes()+more <= d.limit || len(d.segments) == 0
		d.mu.Unlock()
		if enough {
			return nil
		}
		if !d.dropSegment() {
			return errPromised
		}
	}
}

// cut makes room on a disk smaller than Config.MaxBytes: it sets the limit to the present bytes, and deletes a segment.
func (d *Disk) cut() bool {
	d.mu.Lock()
	d.limit = min(d.limit, max(d.bytes(), MinBytes))
	d.grows = time.Now().Add(growEvery)
	if !d.small {
		d.small = true
		d.config.Log.Warn("the disk has less room for spilled values than spill_bytes: the oldest go sooner", "folder",
			d.config.Dir, "spill_bytes", d.config.MaxBytes, "room", d.bytes(), "remedy",
			"enlarge the disk, or lower kv_cache.spill_bytes")
	}
	d.mu.Unlock()
	return d.dropSegment()
}

// dropSegment deletes the oldest segment whose promised values can be saved in memory, up to Config.MaxQueue bytes of
// all segments together; false = there is none. Only Run calls it, once Open has returned.
//
// What lost: to keep a segment as long as one of its values is promised, so that a client with one EXISTS of a key
// every 30 s stops all spilling; and to write the values to a newer segment, for which a full disk has no room.
func (d *Disk) dropSegment() bool {
	g, promised := d.chooseVictim()
	if g == nil {
		return false
	}
	saved := make([]*[]byte, len(promised))
	for i, p := range promised {
		b := make([]byte, p.record.size)
		err := g.read(context.Background(), p.at+p.record.head(), [][]byte{b})
		if err == nil && sumOf(p.record.key, [][]byte{b}) == p.record.sum {
			saved[i] = &b
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for i, p := range promised {
		if saved[i] == nil || d.index[p.record.key] != p { // corrupt; or replaced or deleted meanwhile
			continue
		}
		delete(g.keys, p.record.key)
		d.index[p.record.key] = extent{record: p.record, saved: saved[i]}
		d.attic += p.record.size
	}
	for key := range g.keys {
		d.remove(key)
		delete(d.promised, key)
		d.config.Losses.Note(key)
	}
	d.stats.Dropped += uint64(len(g.keys))
	d.segments = slices.DeleteFunc(d.segments, func(s *segment) bool { return s == g })
	g.gone = true
	_ = os.Remove(g.path) // else the next start finds it, and drops it again
	g.close()
	return true
}

// chooseVictim returns the segment to drop, and its promised values.
func (d *Disk) chooseVictim() (*segment, []extent) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	promised := map[*segment][]extent{}
	bytes := map[*segment]int64{}
	for key, until := range d.promised {
		if p, ok := d.index[key]; ok && p.segment != nil && now.Before(until) {
			promised[p.segment] = append(promised[p.segment], p)
			bytes[p.segment] += p.record.size
		}
	}
	for _, g := range d.segments[:min(len(d.segments), max(1, len(d.segments)-1))] { // not the one that is being written
		if d.attic+bytes[g] <= d.config.MaxQueue {
			g.leaving = true
			return g, promised[g]
		}
	}
	return nil, nil
}

// unkeep ends a promise. The caller holds mu.
func (d *Disk) unkeep(key string) {
	delete(d.promised, key)
	if p, ok := d.index[key]; ok && p.saved != nil {
		d.drop(p)
		d.stats.Dropped++
	}
}

// drop deletes a value on the disk's own account.
func (d *Disk) drop(p extent) {
	d.forget(p)
	d.config.Losses.Note(p.record.key)
}

// endPromises ends the promises whose time is over, and raises a limit that a full disk has lowered.
func (d *Disk) endPromises() {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	for key, until := range d.promised {
		if !now.Before(until) {
			d.unkeep(key)
		}
	}
	if d.limit < d.config.MaxBytes && now.After(d.grows) {
		d.limit = min(d.limit+d.limit/segments, d.config.MaxBytes)
		d.grows = now.Add(growEvery)
	}
}

// waitForPromises stops writing until some promises have ended. The caller holds mu.
func (d *Disk) waitForPromises() {
	now := time.Now()
	d.paused = now.Add(promiseWait)
	if d.crowded.Due(now, toldEvery) {
		d.config.Log.Warn("values of the KV cache are not spilled, as all segments of the disk are full of values that are "+
			"promised to clients", "folder", d.config.Dir, "remedy", "enlarge kv_cache.spill_bytes and kv_cache.max_bytes")
	}
}
