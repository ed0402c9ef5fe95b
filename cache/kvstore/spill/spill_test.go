package spill

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/cache/kvstore"
	"github.com/warmpath/warmpath/daemon/lab/logtest"
	"github.com/warmpath/warmpath/daemon/lab/waittest"
)

var quiet = slog.New(slog.DiscardHandler)

// tiers is a store of 8 MiB over a disk.
type tiers struct {
	t      *testing.T
	disk   *Disk
	losses *kvstore.Losses // of the disk
	store  *kvstore.Store
	stop   func()
}

func start(t *testing.T, dir string, maxBytes int64) *tiers {
	t.Helper()
	losses := kvstore.NewLosses(1000)
	d, err := Open(Config{Dir: dir, MaxBytes: maxBytes, Losses: losses, Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	s, err := kvstore.Open(kvstore.Config{MaxBytes: 8 << 20, Disk: d, Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { d.Run(ctx); close(done) }()
	x := &tiers{t: t, disk: d, losses: losses, store: s}
	stopped := false
	x.stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		<-done
		if err := s.Close(5 * time.Second); err != nil {
			t.Error(err)
		}
		d.Close()
	}
	t.Cleanup(x.stop)
	return x
}

func valueOf(key string, size int) []byte {
	return bytes.Repeat([]byte(key+"|"), size/(len(key)+1)+1)[:size]
}

func (x *tiers) put(key string, size int, t kvstore.Terms) {
	x.t.Helper()
	f, err := x.store.Reserve(key, int64(size))
	if err != nil {
		x.t.Fatal(err)
	}
	value := valueOf(key, size)
	for _, p := range f.Pieces() {
		value = value[copy(p, value):]
	}
	f.Commit(t)
}

// settled waits until no value waits to be written.
func (x *tiers) settled() {
	x.t.Helper()
	waittest.Until(x.t, "all is written", func() bool {
		x.disk.mu.Lock()
		defer x.disk.mu.Unlock()
		return len(x.disk.pending) == 0 && len(x.disk.jobs) == 0 && x.disk.queued == 0
	})
}

// get reports whether a value is there, and checks that it is the one that was put.
func (x *tiers) get(key string, size int) bool {
	x.t.Helper()
	l := x.store.Get(context.Background(), key, netip.Addr{})
	if l == nil {
		return false
	}
	defer l.Release()
	if !bytes.Equal(bytes.Join(l.Pieces(), nil), valueOf(key, size)) {
		x.t.Errorf("%s has other bytes", key)
	}
	return true
}

// Values that memory has evicted are on the disk, and are there after a restart.
func TestSpill(t *testing.T) {
	dir := t.TempDir()
	x := start(t, dir, MinBytes)
	for i := range 20 {
		x.put(fmt.Sprint("k", i), 1<<20+i, kvstore.Terms{})
		x.settled()
	}
	x.put("short", 5, kvstore.Terms{Life: time.Hour})
	x.put("over", 5, kvstore.Terms{Life: time.Millisecond})
	x.settled()
	for i := range 20 {
		if !x.get(fmt.Sprint("k", i), 1<<20+i) {
			t.Errorf("k%d is lost", i)
		}
	}
	if n := x.store.Stats(); n.FromDisk < 12 || n.Misses != 0 {
		t.Errorf("%d came from the disk, %d misses", n.FromDisk, n.Misses)
	}
	x.store.Delete("k3")
	x.put("k4", 100, kvstore.Terms{}) // other bytes than before
	x.settled()
	x.stop()

	x = start(t, dir, MinBytes)
	if n := x.disk.Stats(); n.Found != 20 || n.Torn != 0 {
		t.Errorf("the start found %d values, %d torn", n.Found, n.Torn)
	}
	for i := range 20 {
		size := 1<<20 + i
		if i == 4 {
			size = 100
		}
		if got := x.get(fmt.Sprint("k", i), size); got != (i != 3) {
			t.Errorf("k%d after a restart: there %v", i, got)
		}
	}
	if !x.get("short", 5) || x.get("over", 5) {
		t.Error("lives are not kept")
	}
}

func TestTornAndCorrupt(t *testing.T) {
	dir := t.TempDir()
	x := start(t, dir, MinBytes)
	for i := range 5 {
		x.put(fmt.Sprint("k", i), 100_000, kvstore.Terms{})
		x.settled()
	}
	x.stop()
	file := segmentPath(dir, 0)
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	b[150_000] ^= 1 // in k1's value
	if err := os.WriteFile(file, b[:len(b)-10], 0o600); err != nil {
		t.Fatal(err)
	}
	x = start(t, dir, MinBytes)
	if n := x.disk.Stats(); n.Found != 4 || n.Torn != 1 {
		t.Errorf("found %d, torn %d; want 4, 1", n.Found, n.Torn)
	}
	for i, want := range []bool{true, false, true, true, false} {
		if got := x.get(fmt.Sprint("k", i), 100_000); got != want {
			t.Errorf("k%d there: %v; want %v", i, got, want)
		}
	}
	if n := x.disk.Stats(); n.Corrupt != 1 || x.store.Exists("k1", netip.Addr{}, 0) {
		t.Errorf("%d corrupt", n.Corrupt)
	}
	if lost, _ := x.losses.Take(nil); fmt.Sprint(lost) != "[k1]" {
		t.Errorf("%v are noted as lost; want k1", lost)
	}
}

// The files never take more than their bound; the oldest values go, but not promised ones.
func TestBounds(t *testing.T) {
	x := start(t, t.TempDir(), MinBytes)
	for i := range 100 {
		x.put(fmt.Sprint("k", i), 1<<20, kvstore.Terms{})
		x.settled()
		if n := x.disk.Stats(); n.Bytes > MinBytes {
			t.Fatalf("%d bytes on the disk", n.Bytes)
		}
	}
	lost, _ := x.losses.Take(nil)
	if n := x.disk.Stats(); n.Dropped == 0 || n.Values < 40 || len(lost) != int(n.Dropped) {
		t.Errorf("%d values, %d dropped, %d noted as lost", n.Values, n.Dropped, len(lost))
	}
	for _, key := range lost {
		if x.disk.Exists(key, time.Time{}) {
			t.Errorf("%s is noted as lost, and is there", key)
		}
	}
	first := ""
	for i := 99; i >= 0 && x.disk.Exists(fmt.Sprint("k", i), time.Time{}); i-- {
		first = fmt.Sprint("k", i)
	}
	if !x.store.Exists(first, netip.MustParseAddr("10.0.0.1"), time.Minute) {
		t.Fatal("it was there just now")
	}
	for i := range 30 {
		x.put(fmt.Sprint("more", i), 1<<20, kvstore.Terms{})
		x.settled()
	}
	if !x.get(first, 1<<20) {
		t.Errorf("%s was promised, and is gone", first)
	}
	if taken, soon := x.disk.Rescue("huge", 8<<20, time.Time{}, nil); taken || soon {
		t.Error("a value larger than a segment is to be written")
	}
}

// Errors of the disk are counted and logged once a minute, and clients notice nothing.
func TestFailingDisk(t *testing.T) {
	var log logtest.Log
	x := start(t, t.TempDir(), MinBytes)
	x.disk.config.Log = slog.New(slog.NewTextHandler(&log, nil))
	x.put("a", 1000, kvstore.Terms{})
	x.settled()
	broken, err := os.Open(os.DevNull) // cannot be written to
	if err != nil {
		t.Fatal(err)
	}
	defer broken.Close()
	mend := x.swapNewest(broken)
	for i := range 10 {
		if i == 5 {
			x.endPause()
		}
		x.put(fmt.Sprint("k", i), 1000, kvstore.Terms{})
		x.settled()
	}
	mend()
	x.endPause()
	if n := x.disk.Stats(); n.Failures != 2 || n.Skipped != 10 || log.Count("cannot be spilled") != 1 {
		t.Errorf("%d failures, %d skipped; want 2, 10; and one line of:\n%s", n.Failures, n.Skipped, &log)
	}
	for i := range 10 {
		if !x.get(fmt.Sprint("k", i), 1000) {
			t.Errorf("memory has lost k%d", i)
		}
	}
	x.put("b", 1000, kvstore.Terms{})
	x.settled()
	if !x.disk.Exists("b", time.Time{}) || !x.disk.Exists("a", time.Time{}) {
		t.Error("the disk is not used again")
	}
}

// endPause ends the pause after an error.
func (x *tiers) endPause() {
	x.disk.mu.Lock()
	defer x.disk.mu.Unlock()
	x.disk.paused = time.Time{}
}

// swapNewest replaces the file of the newest segment until mend is called.
func (x *tiers) swapNewest(file *os.File) (mend func()) {
	x.disk.mu.Lock()
	defer x.disk.mu.Unlock()
	g := x.disk.segments[len(x.disk.segments)-1]
	was, raw := g.file, g.raw
	g.file, g.raw = file, nil
	return func() {
		x.disk.mu.Lock()
		defer x.disk.mu.Unlock()
		g.file, g.raw = was, raw
	}
}

func TestRefused(t *testing.T) {
	dir := t.TempDir()
	start(t, dir, MinBytes)
	f := func(c Config, want string) {
		t.Helper()
		c.Log = quiet
		if d, err := Open(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Open(%+v) = %v, %v; want %q", c, d, err, want)
		}
	}
	f(Config{Dir: dir, MaxBytes: MinBytes}, "another daemon")
	f(Config{Dir: dir, MaxBytes: 1}, "too few")
	file := filepath.Join(t.TempDir(), "file")
	os.WriteFile(file, nil, 0o600)
	f(Config{Dir: file, MaxBytes: MinBytes}, "not a directory")
}

// FuzzScan: from any file a start reads whole records and cuts off an end without one.
func FuzzScan(f *testing.F) {
	r := record{state: live, key: "key", size: 3, sum: sumOf("key", [][]byte{[]byte("abc")})}
	one := append(r.encode(), make([]byte, r.bytes())...)[:r.bytes()]
	copy(one[r.head():], "abc")
	f.Add(one)
	f.Add(append(bytes.Clone(one), one[:20]...))
	f.Add(slices.Concat([]byte("damaged"), make([]byte, block-7), one))
	f.Add([]byte("wpk2\x01"))
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "f")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		file, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		s, err := scan(file, func(at int64, r record) {
			if at+r.bytes() > int64(len(data)) {
				t.Errorf("record at %d of %d bytes in a file of %d", at, r.bytes(), len(data))
			}
		})
		if st, _ := file.Stat(); err != nil || st.Size() != s.bytes || s.torn != (s.bytes != int64(len(data))) {
			t.Errorf("kept %d of %d, torn %v, %v", s.bytes, len(data), s.torn, err)
		}
	})
}

// TestEndOfSpilled: a value that expires on the disk is dropped and noted without a read; others are not.
func TestEndOfSpilled(t *testing.T) {
	x := start(t, t.TempDir(), MinBytes)
	x.put("lasting", 5, kvstore.Terms{})
	x.put("short", 5, kvstore.Terms{Life: 200 * time.Millisecond})
	x.put("replaced", 5, kvstore.Terms{Life: 200 * time.Millisecond})
	x.put("replaced", 5, kvstore.Terms{Life: time.Hour})
	var lost []string
	waittest.Until(t, "the end is noted", func() bool {
		keys, _ := x.losses.Take(nil)
		lost = append(lost, keys...)
		return len(lost) > 0
	})
	if got := fmt.Sprint(lost); got != "[short]" {
		t.Errorf("%s are noted; want short alone", got)
	}
	if s := x.disk.Stats(); s.Values != 2 {
		t.Errorf("after the end: %+v", s)
	}
	if !x.get("lasting", 5) || !x.get("replaced", 5) {
		t.Error("what has time left is gone")
	}
}

// TestInfoOfSpilled: Info returns the length and the end of a value that only the disk has.
func TestInfoOfSpilled(t *testing.T) {
	x := start(t, t.TempDir(), MinBytes)
	x.put("short", 5, kvstore.Terms{Life: time.Hour})
	x.put("lasting", 1<<20, kvstore.Terms{})
	x.settled()
	for i := range 20 {
		x.put(fmt.Sprint("more", i), 1<<20, kvstore.Terms{})
		x.settled()
	}
	if n := x.store.Page("short", "", 1); len(n) != 1 || n[0].Memory {
		t.Fatalf("memory has not evicted it: %+v", n)
	}
	if size, ends, ok := x.store.Info("lasting"); size != 1<<20 || !ends.IsZero() || !ok {
		t.Errorf("%d bytes, an end at %s, %v; want 1 MiB without an end", size, ends, ok)
	}
	if size, ends, ok := x.store.Info("short"); size != 5 || time.Until(ends).Round(time.Hour) != time.Hour || !ok {
		t.Errorf("%d bytes, an end at %s, %v; want 5 and an end in an hour", size, ends, ok)
	}
	if _, _, ok := x.store.Info("none"); ok {
		t.Error("a key that was never put is there")
	}
}
