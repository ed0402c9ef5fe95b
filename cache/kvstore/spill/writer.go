package spill

import (
	"context"
	"os"
	"time"
)

// Run writes what is put, until ctx ends; then it gives back what it has not written.
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
			d.write(j)
		case <-tick.C:
			after = d.expire(after)
		}
		d.markDead()
	}
}

// looked is at how many keys a second whether their time is over: a million in a quarter of an hour.
const looked = 1000

// expire forgets those of the keys behind one whose time is over. It returns the one to go on behind; "" = from the
// beginning. Their records stay as they are: a start does not take them up.
func (d *Disk) expire(after string) string {
	page := d.keys.Page("", after, looked)
	now := time.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, i := range page {
		if p, ok := d.index[i.Key]; ok && p.record.over(now) {
			d.forget(p)
			d.config.Losses.Note(i.Key)
		}
	}
	if len(page) < looked {
		return ""
	}
	return page[len(page)-1].Key
}

// giveBack ends the leases of what waits.
func (d *Disk) giveBack() {
	for {
		select {
		case j := <-d.jobs:
			j.value.Release()
		default:
			d.markDead()
			return
		}
	}
}

// Close closes the files. Run must have returned, and nobody reads any more.
func (d *Disk) Close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closeFiles()
}

// write appends a value, if it still is the key's.
func (d *Disk) write(j *job) {
	defer j.value.Release()
	g, at := d.room(j)
	if g == nil {
		return
	}
	pieces := j.value.Pieces()
	j.record.sum = sumOf(j.record.key, pieces)
	err := g.write(at, &j.record, pieces)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.queued -= j.record.size
	wanted := d.pending[j.record.key] == j
	if wanted {
		delete(d.pending, j.record.key)
	}
	if err != nil {
		_ = g.file.Truncate(at) // else the next start cuts it off
		d.fail(err)
		return
	}
	g.bytes += j.record.bytes()
	p := place{segment: g, at: at, record: j.record}
	if !wanted { // replaced or deleted meanwhile
		d.dead = append(d.dead, p)
		return
	}
	d.put(p)
	d.stats.Written++
}

// room returns the segment and the offset for a value; nil = it is not written.
func (d *Disk) room(j *job) (*segment, int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.pending[j.record.key] != j || time.Now().Before(d.paused) {
		d.refuse(j)
		return nil, 0
	}
	size := d.config.MaxBytes / segments
	if n := len(d.segments); n > 0 && d.segments[n-1].bytes+j.record.bytes() <= size {
		return d.segments[n-1], d.segments[n-1].bytes
	}
	err := d.shrink(size)
	if err == nil {
		err = d.addSegment()
	}
	if err != nil {
		d.fail(err)
		d.refuse(j)
		return nil, 0
	}
	return d.segments[len(d.segments)-1], 0
}

// refuse forgets a value that is not written.
func (d *Disk) refuse(j *job) {
	d.queued -= j.record.size
	d.stats.Skipped++
	if d.pending[j.record.key] == j {
		delete(d.pending, j.record.key)
	}
}

func (d *Disk) addSegment() error {
	path := segmentPath(d.config.Dir, d.next)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	d.next++
	d.segments = append(d.segments, &segment{file: f, raw: openDirect(path), path: path, keys: map[string]struct{}{}})
	return nil
}

// fail stops writing for a while, and says why.
func (d *Disk) fail(err error) {
	d.stats.Failures++
	d.paused = time.Now().Add(pauseTime)
	d.config.Log.Error("values of the KV cache cannot be spilled; memory serves on", "folder", d.config.Dir, "error", err,
		"again_in", pauseTime)
}

// markDead marks the records of what was deleted or replaced, so that no start brings it back.
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
