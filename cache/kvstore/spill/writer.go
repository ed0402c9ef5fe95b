package spill

import (
	"context"
	"errors"
	"os"
	"syscall"
	"time"

	"github.com/warmpath/warmpath/cache/kvstore"
)

// Run writes values until ctx ends; then it releases those that it has not written.
func (d *Disk) Run(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	after := ""
	for {
		select {
		case <-ctx.Done():
			d.giveBack()
			return
		case j := <-d.jobs:
			if kvstore.Touch(func() { d.write(j) }) != nil {
				d.giveUp(j, kvstore.ErrTorn)
			}
		case <-tick.C:
			after = d.expire(after)
			d.endPromises()
		}
		d.markDead()
	}
}

// looked is how many keys a second are checked for their end: a million in a quarter of an hour.
const looked = 1000

// expire drops the expired ones of the next keys after a key. It returns the key after which the next call goes on, or
// "" to go on from the beginning. It does not change their records: a start does not restore them.
func (d *Disk) expire(after string) string {
	page := d.keys.Page("", after, looked)
	now := time.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, i := range page {
		if p, ok := d.index[i.Key]; ok && p.record.over(now) && !now.Before(d.promised[i.Key]) {
			d.drop(p)
		}
	}
	if len(page) < looked {
		return ""
	}
	return page[len(page)-1].Key
}

// giveBack ends the leases of the values that wait.
func (d *Disk) giveBack() {
	for j := range d.jobs.Waiting(maxJobs) {
		j.value.Release()
	}
	d.markDead()
}

// Close closes the files. Run must have returned, and no read may be under way.
func (d *Disk) Close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closeFiles()
}

// write appends a value if it still belongs to the key. On a full disk it drops the oldest segment, and another one if
// a reader still has that open; then writing pauses.
func (d *Disk) write(j *job) {
	defer j.value.Release()
	pieces := j.value.Pieces()
	j.record.sum = sumOf(j.record.key, pieces)
	for range 3 {
		g, at, err := d.room(j)
		if err == nil && g == nil {
			return
		}
		if err == nil {
			err = g.write(at, &j.record, pieces)
			if err == nil {
				d.wrote(j, extent{segment: g, at: at, record: j.record})
				return
			}
			_ = g.file.Truncate(at) // else the next start has to cut it off
		}
		if !isFull(err) || !d.cut() {
			d.giveUp(j, err)
			return
		}
	}
	d.giveUp(j, syscall.ENOSPC)
}

// wrote enters a written value into the index.
func (d *Disk) wrote(j *job, p extent) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.queued -= j.record.size
	p.segment.bytes += j.record.bytes()
	if d.pending[j.record.key] != j { // replaced or deleted meanwhile
		d.dead = append(d.dead, p)
		return
	}
	delete(d.pending, j.record.key)
	d.put(p)
	d.stats.Written++
}

// giveUp drops a value that could not be written, and pauses.
func (d *Disk) giveUp(j *job, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.refuse(j)
	if errors.Is(err, errPromised) {
		d.waitForPromises()
		return
	}
	d.fail(err)
}

// room returns the segment and the offset for a value; nil = the value is refused.
func (d *Disk) room(j *job) (*segment, int64, error) {
	d.mu.Lock()
	if d.pending[j.record.key] != j || time.Now().Before(d.paused) {
		d.refuse(j)
		d.mu.Unlock()
		return nil, 0, nil
	}
	size := max(d.limit/segments, j.record.bytes())
	if n := len(d.segments); n > 0 && d.segments[n-1].bytes+j.record.bytes() <= size {
		defer d.mu.Unlock()
		return d.segments[n-1], d.segments[n-1].bytes, nil
	}
	d.mu.Unlock()
	if err := d.makeRoom(size); err != nil {
		return nil, 0, err
	}
	g, err := d.addSegment()
	return g, 0, err
}

// refuse drops a value without writing it.
func (d *Disk) refuse(j *job) {
	d.queued -= j.record.size
	d.stats.Skipped++
	if d.pending[j.record.key] == j {
		delete(d.pending, j.record.key)
	}
}

func (d *Disk) addSegment() (*segment, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	path := segmentPath(d.config.Dir, d.next)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	d.next++
	g := &segment{file: f, raw: openDirect(path), path: path, keys: map[string]struct{}{}}
	d.segments = append(d.segments, g)
	return g, nil
}

// fail pauses writing, and logs why.
func (d *Disk) fail(err error) {
	now := time.Now()
	d.stats.Failures++
	d.paused = now.Add(pauseTime)
	if d.failing.Due(now, toldEvery) {
		d.config.Log.Error("values of the KV cache cannot be spilled; memory serves on", "folder", d.config.Dir, "error", err,
			"again_in", pauseTime)
	}
}

// markDead marks the records of deleted and replaced values, so that no start restores them.
func (d *Disk) markDead() {
	d.mu.Lock()
	list := d.dead
	d.dead = nil
	for _, p := range list {
		p.segment.refs++
	}
	d.mu.Unlock()
	for _, p := range list {
		_, _ = p.segment.file.WriteAt([]byte{dead}, p.at+stateAt) // if it fails, the next start finds an old value
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, p := range list {
		p.segment.refs--
		p.segment.close()
	}
}
