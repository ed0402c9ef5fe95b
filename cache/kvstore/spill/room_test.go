package spill

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/cache/kvstore"
	"github.com/warmpath/warmpath/daemon/lab/waittest"
)

var client = netip.MustParseAddr("10.0.0.1")

// A client that requests one key again and again keeps that value, and no other: spilling goes on.
func TestPromiseOfOneKey(t *testing.T) {
	x := start(t, t.TempDir(), MinBytes)
	for i := range 200 {
		x.put(fmt.Sprint("k", i), 1<<20, kvstore.Terms{})
		x.settled()
		if i%20 == 19 && !x.store.Exists("k0", client, time.Minute) {
			t.Fatalf("k0 is gone after %d puts, and was promised", i)
		}
	}
	if n := x.disk.Stats(); n.Skipped != 0 || n.Dropped < 120 || n.Bytes > MinBytes {
		t.Errorf("%d values were skipped, %d dropped, the files have %d bytes", n.Skipped, n.Dropped, n.Bytes)
	}
	if !x.disk.Exists("k199", time.Time{}) || x.disk.Exists("k1", time.Time{}) {
		t.Error("the newest value is not on the disk, or the oldest one still is")
	}
	for range 10 {
		if !x.get2("k0", 1<<20, client) {
			t.Fatal("k0 is gone, and was promised ten times")
		}
	}
	if x.disk.Exists("k0", time.Time{}) {
		t.Error("k0 is kept after its promises were kept, though its segment is gone")
	}
	if n := x.store.Stats(); n.Broken != 0 {
		t.Errorf("%d promises are broken", n.Broken)
	}
}

// get2 is get by a client with a promise of the value.
func (x *tiers) get2(key string, size int, owner netip.Addr) bool {
	l := x.store.Get(x.t.Context(), key, owner)
	if l == nil {
		return false
	}
	defer l.Release()
	return bytes.Equal(bytes.Join(l.Pieces(), nil), valueOf(key, size))
}

// A promise ends with its time: then its value can go.
func TestPromiseEnds(t *testing.T) {
	x := start(t, t.TempDir(), MinBytes)
	for i := range 20 {
		x.put(fmt.Sprint("k", i), 1<<20, kvstore.Terms{})
		x.settled()
	}
	if !x.disk.Exists("k0", time.Now().Add(time.Minute)) || !x.disk.Exists("k1", time.Now().Add(100*time.Millisecond)) {
		t.Fatal("what was just put is not on the disk")
	}
	x.disk.dropSegment()
	for key, want := range map[string]bool{"k0": true, "k1": true, "k2": false} {
		if got := x.disk.Exists(key, time.Time{}); got != want {
			t.Errorf("after its segment has gone %s is there: %v", key, got)
		}
	}
	waittest.Until(t, "k1 goes", func() bool { return !x.disk.Exists("k1", time.Time{}) })
	x.disk.mu.Lock()
	attic := x.disk.attic
	x.disk.mu.Unlock()
	if !x.disk.Exists("k0", time.Time{}) || attic != 1<<20 {
		t.Errorf("k0 is gone before its time, or %d bytes are saved; want its own", attic)
	}
	x.put("k0", 100, kvstore.Terms{})
	x.settled()
	if x.disk.mu.Lock(); x.disk.attic != 0 {
		t.Errorf("%d bytes are saved after a put of the key", x.disk.attic)
	}
	x.disk.mu.Unlock()
}

// More promised values than memory may save keep their segments: another segment goes, or writing waits without an
// alarm.
func TestPromisesFillTheDisk(t *testing.T) {
	var log bytes.Buffer
	x := start(t, t.TempDir(), MinBytes)
	x.disk.config.MaxQueue = 4 << 20
	x.disk.config.Log = slog.New(slog.NewTextHandler(&log, nil))
	for i := range 56 { // eight segments of seven
		x.put(fmt.Sprint("k", i), 1<<20, kvstore.Terms{})
		x.settled()
	}
	promise := func(from, to int) {
		for i := from; i < to; i++ {
			x.disk.Exists(fmt.Sprint("k", i), time.Now().Add(time.Minute))
		}
	}
	promise(0, 7)
	x.put("k56", 1<<20, kvstore.Terms{})
	x.settled()
	if !x.disk.Exists("k0", time.Time{}) || x.disk.Exists("k7", time.Time{}) || !x.disk.Exists("k56", time.Time{}) {
		t.Error("the segment that is full of promises has gone, or the next one has not")
	}
	promise(14, 57)
	for i := range 7 {
		x.put(fmt.Sprint("more", i), 1<<20, kvstore.Terms{})
		x.settled()
	}
	n := x.disk.Stats()
	if n.Failures != 0 || n.Skipped == 0 || !strings.Contains(log.String(), "promised to clients") {
		t.Errorf("%d failures, %d skipped, and the log says %s", n.Failures, n.Skipped, &log)
	}
	for i := 14; i < 57; i++ {
		if !x.disk.Exists(fmt.Sprint("k", i), time.Time{}) {
			t.Errorf("k%d was promised, and is gone", i)
		}
	}
}

// On a disk with less room than configured the oldest values go, with one log line.
func TestFullDisk(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_RDWR, 0)
	if err != nil {
		t.Skip("SKIPPED: there is no /dev/full here")
	}
	defer full.Close()
	var log bytes.Buffer
	x := start(t, t.TempDir(), 2*MinBytes)
	x.disk.config.Log = slog.New(slog.NewTextHandler(&log, nil))
	for i := range 104 { // seven segments of 15, and one of 14
		x.put(fmt.Sprint("k", i), 1<<20, kvstore.Terms{})
		x.settled()
	}
	had := x.disk.Stats().Bytes
	mend := x.swapNewest(full)
	x.put("over", 1<<20, kvstore.Terms{})
	x.settled()
	mend()
	n := x.disk.Stats()
	if n.Dropped != 15 || n.Failures+n.Skipped != 0 || n.MaxBytes != had || n.Short != 2*MinBytes-had || !x.disk.Exists("over", time.Time{}) {
		t.Errorf("after the disk was full: %+v; want 15 values dropped, none skipped, and room for %d bytes", n, had)
	}
	for i := range 100 {
		x.put(fmt.Sprint("more", i), 1<<20, kvstore.Terms{})
		x.settled()
	}
	if n := x.disk.Stats(); n.Bytes > had || n.Skipped != 0 {
		t.Errorf("the files have %d bytes of %d, %d values were skipped", n.Bytes, had, n.Skipped)
	}
	if got := strings.Count(log.String(), "less room for spilled values"); got != 1 {
		t.Errorf("%d lines say that the disk is full; want 1: %s", got, &log)
	}
	x.disk.mu.Lock()
	x.disk.grows = time.Now().Add(-time.Second)
	x.disk.mu.Unlock()
	x.disk.endPromises()
	if got := x.disk.MaxBytes(); got != had+had/segments {
		t.Errorf("a while later there is room for %d bytes; want an eighth more than %d", got, had)
	}
}

// A value that the disk skipped when it was put is written before memory evicts it.
func TestSpillAtEviction(t *testing.T) {
	x := start(t, t.TempDir(), MinBytes)
	x.disk.config.MaxQueue = 2 << 20
	x.disk.mu.Lock()
	x.disk.paused = time.Now().Add(time.Hour)
	x.disk.mu.Unlock()
	for i := range 5 {
		x.put(fmt.Sprint("k", i), 1<<20, kvstore.Terms{})
	}
	x.put("deleted", 1000, kvstore.Terms{})
	x.store.Delete("deleted")
	x.disk.mu.Lock()
	x.disk.paused = time.Time{}
	x.disk.mu.Unlock()
	for i := range 20 {
		x.put(fmt.Sprint("more", i), 1<<20, kvstore.Terms{})
		x.settled()
	}
	for i := range 5 {
		if !x.get(fmt.Sprint("k", i), 1<<20) {
			t.Errorf("k%d is lost: it was skipped, and memory has evicted it", i)
		}
	}
	if n := x.store.Stats(); n.FromDisk == 0 || n.Refused["full"] != 0 {
		t.Errorf("%d values came from the disk, %d puts were refused", n.FromDisk, n.Refused["full"])
	}
	if x.disk.Exists("deleted", time.Time{}) {
		t.Error("a value that was deleted is on the disk")
	}
}
