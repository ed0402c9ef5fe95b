package peers

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/cache/prefix"
	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/request/prompt"
	"github.com/warmpath/warmpath/daemon/request/route"
)

var served = []string{"org/model", "*"}

// seenChains fills a pool's books, and returns the chains.
func seenChains(p *route.Pool, now time.Time) (chains [][]uint64) {
	r := rand.New(rand.NewPCG(1, 1))
	for i := range 3000 {
		var chain []uint64
		if i > 0 && r.IntN(3) > 0 {
			of := chains[r.IntN(len(chains))]
			chain = append(chain, of[:r.IntN(len(of)+1)]...)
		}
		for range 1 + r.IntN(40) {
			chain = append(chain, max(1, r.Uint64()))
		}
		chains = append(chains, chain)
		at := now.Add(-time.Duration(3000-i) * 100 * time.Millisecond)
		p.Recall(worker.KeyOf(fmt.Sprint("w", r.IntN(4))), 1+uint64(i%3), chain, at, now)
	}
	return chains
}

// learn makes a pool learn that w1 is slow, and how soon prompts come back.
func learn(p *route.Pool) {
	p.Workers.RelearnFleet(worker.FleetSpeed{Seconds: 2e-4, Samples: 70})
	p.Workers.Relearn(worker.KeyOf("w1"), worker.Speed{Rel: 1.75, Evidence: 12})
	gaps := prefix.Gaps{New: 3e4, Noted: 60}
	gaps.Again[5], gaps.Again[40] = 7e4, 123
	p.Relearnt(&route.Experience{Reuse: gaps})
}

// life is the pool of one process, with its file.
type life struct {
	file *StateFile
	pool *route.Pool
	log  *bytes.Buffer
}

func newLife(t testing.TB, path string, workers int, secret byte, models []string) *life {
	t.Helper()
	l := &life{log: &bytes.Buffer{}}
	c := &clock{time.Now()}
	l.pool = newPool(t, c, workers, 1<<18)
	l.pool.SetSecret(route.Secret{secret})
	l.file = OpenState(path, slog.New(slog.NewTextHandler(l.log, nil)))
	l.file.Join("p", func() []string { return models }, l.pool)
	return l
}

// The next process restores what one process has written: the secret, and the same blocks of every worker.
func TestStateFileRestores(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "state")
	one := newLife(t, path, 4, 7, served)
	if !strings.Contains(one.log.String(), "none yet") {
		t.Errorf("log: %s", one.log)
	}
	chains := seenChains(one.pool, time.Now())
	learn(one.pool)
	one.file.Save()
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("%v, mode %v", err, info.Mode())
	}
	if left, _ := filepath.Glob(path + "*"); len(left) != 1 {
		t.Errorf("files: %v", left)
	}
	two := newLife(t, path, 4, 8, []string{"*", "org/model"})
	if two.pool.Secret() != one.pool.Secret() {
		t.Fatal("the secret is another")
	}
	a, b := one.pool.Experience(), two.pool.Experience()
	if x := b.Speed.Seconds / a.Speed.Seconds; x < .999 || x > 1.001 || b.Speed.Samples != 50 {
		t.Errorf("the fleet's speed: %+v; want %+v, of 50 samples", b.Speed, a.Speed)
	}
	if b.Reuse.Noted != a.Reuse.Noted || a.Reuse.Noted != 60 || math.Abs(b.Reuse.New/a.Reuse.New-1) > .001 {
		t.Errorf("reuse: %+v; want %+v, of 60 requests", b.Reuse, a.Reuse)
	}
	for i, tokens := range a.Reuse.Again {
		if math.Abs(b.Reuse.Again[i]-tokens) > .001*tokens {
			t.Errorf("reuse: bucket %d: %v; want %v", i, b.Reuse.Again[i], tokens)
		}
	}
	for i := range 4 {
		key := worker.KeyOf(fmt.Sprint("w", i))
		x, y := one.pool.Learnt(key).Speed, two.pool.Learnt(key).Speed
		if math.Abs(y.Rel/x.Rel-1) > .001 || math.Abs(y.Evidence-x.Evidence) > .001 || i == 1 && x.Rel < 1.5 {
			t.Errorf("w%d: %+v; want %+v, and w1 slow", i, y, x)
		}
	}
	if w := one.file.Stats(); !w.On || w.Failed || w.Bytes != info.Size() || w.At.IsZero() {
		t.Errorf("%+v; want %d bytes", w, info.Size())
	}
	if a, b := one.pool.Index.Stats(), two.pool.Index.Stats(); a.Blocks != b.Blocks || a.Blocks < 20_000 {
		t.Fatalf("%+v; want %+v", b, a)
	}
	for keep := 1 << 13; keep > 16; keep /= 3 { // and the order in which they go
		for slot := range uint32(4) {
			one.pool.Index.SetCapacity(slot, keep)
			two.pool.Index.SetCapacity(slot, keep)
			for i, chain := range chains {
				space := 1 + uint64(i%3)
				want := one.pool.Index.Space(space).MatchOne(chain, slot)
				if got := two.pool.Index.Space(space).MatchOne(chain, slot); got != want {
					t.Fatalf("worker %d of %d blocks: chain %d: %d; want %d", slot, keep, i, got, want)
				}
			}
		}
	}
	if s := two.log.String(); strings.Contains(s, "WARN") || !strings.Contains(s, "workers=4 of=4") {
		t.Errorf("log: %s", s)
	}
}

// A file that does not fit is ignored: one log line gives the reason and the remedy, and the file is written anew.
func TestStateFileRefused(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "state")
	one := newLife(t, path, 4, 7, served)
	seenChains(one.pool, time.Now())
	one.file.Save()
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f := func(name, want string, workers int, models []string, change func(b []byte) []byte) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile(path, change(bytes.Clone(good)), 0o600); err != nil {
				t.Fatal(err)
			}
			l := newLife(t, path, workers, 9, models)
			s := l.log.String()
			if !strings.Contains(s, want) || strings.Count(s, "\n") != 1 || !strings.Contains(s, path) {
				t.Errorf("log: %s\nwant one line with %q", s, want)
			}
			if n := l.pool.Index.Stats().Blocks; n != 0 {
				t.Errorf("%d blocks; want none", n)
			}
			if l.pool.Secret() != (route.Secret{9}) {
				t.Error("the secret is the file's")
			}
			seenChains(l.pool, time.Now()) // its own history goes on, and survives the file
			l.file.Save()
			if n := newLife(t, path, workers, 1, models).pool.Index.Stats().Blocks; n == 0 {
				t.Error("what it wrote then is not believed")
			}
		})
	}
	same := func(b []byte) []byte { return b }
	old := func(age time.Duration) func(b []byte) []byte {
		return func(b []byte) []byte {
			binary.LittleEndian.PutUint64(b[6:], uint64(time.Now().Add(-age).UnixMicro()))
			return resum(b)
		}
	}
	f("cut", "cut or changed", 4, served, func(b []byte) []byte { return b[:len(b)/2] })
	f("cut to its head", "cut or changed", 4, served, func(b []byte) []byte { return b[:10] })
	f("empty", "no state file", 4, served, func(b []byte) []byte { return nil })
	f("foreign", "no state file", 4, served, func(b []byte) []byte { return []byte(strings.Repeat("hello ", 99)) })
	f("one bit", "cut or changed", 4, served, func(b []byte) []byte { b[len(b)/3] ^= 4; return b })
	f("another version", "another release", 4, served, func(b []byte) []byte { b[4]++; return resum(b) })
	f("another text", "another release", 4, served, func(b []byte) []byte { b[5] = prompt.TextVersion + 1; return resum(b) })
	f("cut, with a right sum", "cut or changed", 4, served, func(b []byte) []byte { return resum(b[:len(b)/2]) })
	f("old", "at most 1h0m0s are believed", 4, served, old(61*time.Minute))
	f("of tomorrow", "are believed", 4, served, old(-24*time.Hour))
	f("other models", "models were others", 4, []string{"org/model"}, same)
	f("too large", "at most", 4, served, func(b []byte) []byte { return make([]byte, maxState+maxState/8+1) })

	other := newLife(t, filepath.Join(t.TempDir(), "none"), 4, 7, served) // the pool's name is another
	other.file.pools[0].name = "q"
	other.file.Save()
	f("another pool", "no pool of this name", 4, served, func([]byte) []byte {
		b, _ := os.ReadFile(other.file.path)
		return b
	})
	other.file.pools[0].name = "p"
	other.pool.Workers.Update([]worker.Spec{{ID: "w0", URL: "http://elsewhere"}, {ID: "x", URL: "http://w1"}}, time.Now())
	other.file.Save()
	f("another fleet", "none of the pool's workers", 4, served, func([]byte) []byte {
		b, _ := os.ReadFile(other.file.path)
		return b
	})
}

// TestStateFileLog: what changed since the file was written stands in its log: chains, and caches that were lost. A log
// whose end is cut gives what is before it, with a line. One of another file gives nothing. A log that is longer than
// the file, and another fleet, have all written anew.
func TestStateFileLog(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "state")
	one := newLife(t, path, 4, 7, served)
	seenChains(one.pool, time.Now())
	one.file.Save()
	whole := one.file.Stats().Bytes
	blocks := func(l *life) (n [4]int) {
		for i := range n {
			n[i] = l.pool.Index.Worker(uint32(i)).Blocks
		}
		return n
	}
	recall := func(w string, first uint64) {
		var chain []uint64
		for i := range uint64(100) {
			chain = append(chain, first+i)
		}
		one.pool.Recall(worker.KeyOf(w), 1, chain, time.Now(), time.Now())
	}
	read := func(what string, want [4]int, lines int) {
		t.Helper()
		two := newLife(t, path, 4, 8, served)
		if got := blocks(two); got != want || strings.Count(two.log.String(), "\n") != lines {
			t.Errorf("%s: %v blocks; want %v\n%s", what, got, want, two.log)
		}
	}
	read("no log", blocks(one), 1)
	recall("w1", 1e6)
	one.file.Save()
	first := blocks(one)
	read("another chain", first, 1)
	if n := one.file.Stats().Bytes - whole; n < 800 || n > 3000 {
		t.Errorf("a log of %d bytes for 100 blocks", n)
	}
	for page := range 2 { // of another process
		one.pool.Workers.Scraped(3, worker.Page{Metrics: worker.Metrics{Process: 1e9 + 1e4*float64(page)}}, time.Now())
	}
	recall("w2", 2e6)
	recall("w3", 3e6)
	one.file.Save()
	read("a lost cache, and two chains", blocks(one), 1)
	if n := blocks(one)[2]; n != 100 {
		t.Errorf("%d blocks at a worker that has lost its cache; want 100", n)
	}
	log, err := os.ReadFile(path + logSuffix)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{1, 20, 300} {
		write(t, path+logSuffix, log[:len(log)-n])
		read("a log without its end", first, 2)
	}
	log[5]++
	write(t, path+logSuffix, log)
	file, _ := os.ReadFile(path)
	base := newLife(t, filepath.Join(t.TempDir(), "x"), 4, 8, served)
	write(t, base.file.path, file)
	read("the log of another file", blocks(newLife(t, base.file.path, 4, 8, served)), 1)
	for n := uint64(0); one.file.logged <= one.file.whole; n++ {
		for i := range uint64(40) {
			recall("w0", 1e7+1000*(40*n+i))
		}
		one.file.Save()
	}
	one.file.Save()
	if _, err := os.Stat(path + logSuffix); err == nil || one.file.logged > 0 {
		t.Error("a log that is longer than its file is kept")
	}
	read("written anew", blocks(one), 1)
	recall("w0", 5e8)
	one.pool.Workers.Update([]worker.Spec{{ID: "w0", URL: "http://w0"}}, time.Now())
	one.file.Save()
	if one.file.logged > 0 {
		t.Error("another fleet is written to the log")
	}
}

func write(t *testing.T, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// Where only a part of the fleet is the same, that part is restored.
func TestStateFileOfAPart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	one := newLife(t, path, 4, 7, served)
	seenChains(one.pool, time.Now())
	one.pool.Workers.Update([]worker.Spec{{ID: "w0", URL: "http://moved"}, {ID: "w1", URL: "http://w1"},
		{ID: "w2", URL: "http://w2"}}, time.Now())
	seenChains(one.pool, time.Now())
	one.file.Save()
	two := newLife(t, path, 4, 8, served)
	if s := two.log.String(); !strings.Contains(s, "workers=2 of=4") {
		t.Errorf("log: %s", s)
	}
	for slot, want := range []bool{false, true, true, false} {
		if n := two.pool.Index.Worker(uint32(slot)).Blocks; n > 0 != want {
			t.Errorf("w%d: %d blocks; want any: %v", slot, n, want)
		}
	}
}

// Save logs once that a folder cannot be written, and once that it can be again. The old file stays.
func TestStateFileUnwritable(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "gone")
	l := newLife(t, filepath.Join(dir, "state"), 2, 7, served)
	l.log.Reset()
	l.file.Save()
	l.file.Save()
	l.file.try()
	if s := l.log.String(); strings.Count(s, "\n") != 1 || !strings.Contains(s, "make its folder writable") {
		t.Errorf("log: %s", s)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	l.file.Save()
	if s := l.log.String(); strings.Count(s, "\n") != 2 || !strings.Contains(s, "written again") {
		t.Errorf("log: %s", s)
	}
}

// Two processes with one file are told apart from one, and from the two of an upgrade.
func TestStateFileOfTwo(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	one := newLife(t, path, 2, 7, served)
	one.file.Save()
	one.file.Save()
	release := one.file.Hold()
	two := newLife(t, path, 2, 8, served)
	two.file.Save()
	release()
	one.file.Save()
	if s := one.log.String() + two.log.String(); strings.Contains(s, "another process") {
		t.Errorf("of one, and of an upgrade: %s", s)
	}
	two.file.Save()
	one.file.Save()
	for _, l := range []string{one.log.String(), two.log.String()} {
		if strings.Count(l, "another process writes it too") != 1 {
			t.Errorf("of two: %s", l)
		}
	}
}

// No content of a file makes the reader fail, or take more memory than the file has bytes.
func FuzzStateFile(f *testing.F) {
	path := filepath.Join(f.TempDir(), "state")
	l := newLife(f, path, 2, 7, served)
	l.pool.Recall(worker.KeyOf("w0"), 1, []uint64{1, 2, 3}, time.Now(), time.Now())
	l.file.Save()
	good, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good[stateHead : len(good)-sumBytes])
	f.Add([]byte{1, 1, 'p'})
	f.Fuzz(func(t *testing.T, body []byte) {
		b := append(bytes.Clone(good[:stateHead]), body...)
		now := time.UnixMicro(int64(binary.LittleEndian.Uint64(b[6:])))
		s, err := readState(resum(append(b, 0, 0, 0, 0)), now)
		if err != nil {
			return
		}
		n := 0
		for _, p := range s.pools {
			n += len(p.name) + 25*len(p.workers)
			for _, frame := range p.frames {
				n += len(frame)
			}
		}
		if n > len(body) {
			t.Errorf("%d bytes of %d", n, len(body))
		}
	})
}
