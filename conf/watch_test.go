package conf

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// watched runs Watch over real files on synctest's clock. tick lets one poll pass; seen is how often changed was called
// after the call for what Watch's first looks read.
func watched(t *testing.T, files func() []string, body func(tick func(n int), seen func(want int64, when string))) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		const poll = time.Second
		var calls atomic.Int64
		ctx, cancel := context.WithCancel(t.Context())
		go Watch(ctx, poll, files, func() { calls.Add(1) })
		time.Sleep(poll + poll/2) // between polls from here on
		synctest.Wait()
		if got := calls.Swap(0); got != 1 {
			t.Errorf("changed was called %d times for what was there at first; want once", got)
		}
		tick := func(n int) {
			time.Sleep(time.Duration(n) * poll)
			synctest.Wait()
		}
		body(tick, func(want int64, when string) {
			t.Helper()
			if got := calls.Load(); got != want {
				t.Errorf("%s: changed was called %d times; want %d", when, got, want)
			}
		})
		cancel()
		synctest.Wait() // Watch must return: synctest fails on a goroutine left over
	})
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestWatchInPlaceAndRenameOver(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.toml")
	write(t, path, "1")
	watched(t, func() []string { return []string{path} }, func(tick func(int), seen func(int64, string)) {
		tick(5)
		seen(0, "nothing happened")
		write(t, path, "2")
		tick(1)
		seen(0, "after one look")
		tick(1)
		seen(1, "after a second look that reads the same")
		tick(5)
		seen(1, "told once")
		write(t, path+".new", "3")
		must(t, os.Rename(path+".new", path))
		tick(2)
		seen(2, "renamed over")
		must(t, os.Chtimes(path, time.Unix(1, 0), time.Unix(1, 0)))
		tick(3)
		seen(2, "touched only")
	})
}

func TestWatchWaitsForStableContent(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.toml")
	write(t, path, "")
	watched(t, func() []string { return []string{path} }, func(tick func(int), seen func(int64, string)) {
		for _, text := range []string{"h", "ha", "half", "half writ"} {
			write(t, path, text)
			tick(1)
		}
		seen(0, "still being written")
		write(t, path, "half written")
		tick(2)
		seen(1, "done")
		write(t, path, "x")
		tick(1)
		write(t, path, "half written")
		tick(3)
		seen(1, "taken back before it was stable")
	})
}

func TestWatchMissingFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.toml")
	write(t, path, "1")
	watched(t, func() []string { return []string{path} }, func(tick func(int), seen func(int64, string)) {
		must(t, os.Remove(path))
		tick(5)
		seen(0, "gone")
		write(t, path, "1")
		tick(5)
		seen(0, "back as it was")
		must(t, os.Remove(path))
		must(t, os.Mkdir(path, 0o700))
		tick(3)
		seen(0, "a folder")
		must(t, os.Remove(path))
		write(t, path, "2")
		tick(2)
		seen(1, "back with other content")
	})
}

// TestWatchBesideAMissingFile: a file that is gone keeps no change of another from being taken up, and is one when it is
// back.
func TestWatchBesideAMissingFile(t *testing.T) {
	dir := t.TempDir()
	file, module := filepath.Join(dir, "a.toml"), filepath.Join(dir, "b.wasm")
	write(t, file, "1")
	write(t, module, "1")
	watched(t, func() []string { return []string{file, module} }, func(tick func(int), seen func(int64, string)) {
		must(t, os.Remove(module))
		tick(3)
		seen(0, "the module is gone")
		write(t, file, "2")
		tick(3)
		seen(1, "the file changed meanwhile")
		write(t, module, "1")
		tick(3)
		seen(2, "the module is back")
		tick(3)
		seen(2, "told once")
	})
}

// Kubernetes updates a ConfigMap so: file -> ..data/file, ..data -> ..1; a new folder ..2, and ..data is renamed over.
func TestWatchKubernetesSwap(t *testing.T) {
	dir := t.TempDir()
	for _, v := range []string{"..1", "..2"} {
		must(t, os.Mkdir(filepath.Join(dir, v), 0o700))
		write(t, filepath.Join(dir, v, "a.toml"), v)
	}
	path := filepath.Join(dir, "a.toml")
	must(t, os.Symlink("..1", filepath.Join(dir, "..data")))
	must(t, os.Symlink("..data/a.toml", path))
	watched(t, func() []string { return []string{path} }, func(tick func(int), seen func(int64, string)) {
		tick(3)
		seen(0, "before")
		must(t, os.Symlink("..2", filepath.Join(dir, "..data_tmp")))
		must(t, os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")))
		tick(2)
		seen(1, "after the swap")
	})
}

func TestWatchFollowsTheListOfFiles(t *testing.T) {
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a.toml"), filepath.Join(dir, "b.wasm")
	write(t, a, "1")
	write(t, b, "1")
	var list atomic.Pointer[[]string]
	list.Store(&[]string{a})
	watched(t, func() []string { return *list.Load() }, func(tick func(int), seen func(int64, string)) {
		write(t, b, "2")
		tick(3)
		seen(0, "a file that is not watched")
		list.Store(&[]string{a, b})
		tick(2)
		seen(1, "what came in may have changed since it was loaded")
		write(t, b, "3")
		tick(2)
		seen(2, "the module changed")
	})
}

// TestWatchStartsLate: a file that is written after it was loaded, and before Watch looks for the first time, is loaded.
func TestWatchStartsLate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.toml")
	const text = "[[pools]]\n[[pools.workers]]\nurl = \"http://127.0.0.1:1\"\n"
	write(t, path, text)
	synctest.Test(t, func(t *testing.T) {
		var l Loaded
		apply := func(*Config) error { return nil }
		c, err := l.Load(path, apply)
		must(t, err)
		var loads atomic.Int64
		watch := func(d time.Duration) {
			ctx, cancel := context.WithTimeout(t.Context(), d)
			defer cancel()
			l.Watch(ctx, time.Second, new(sync.Mutex), func() *Config { return c }, func() {
				loads.Add(1)
				_, err := l.Load(path, apply)
				must(t, err)
			})
		}
		watch(5 * time.Second)
		if got := loads.Load(); got != 0 {
			t.Errorf("what was loaded was loaded again, %d times", got)
		}
		write(t, path, text+"# later\n")
		watch(5 * time.Second)
		if got := loads.Load(); got != 1 {
			t.Errorf("a file that was written before the first look was loaded %d times; want once", got)
		}
	})
}

// TestARefusalEndsWhenTheFilesAreBack: a load that a signal asked for finds the file missing or half written, and it is
// back as it was before the watch sees a change. The watch loads it once more, and no oftener if that is refused too.
func TestARefusalEndsWhenTheFilesAreBack(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.toml")
	const text = "[[pools]]\n[[pools.workers]]\nurl = \"http://127.0.0.1:1\"\n"
	write(t, path, text)
	synctest.Test(t, func(t *testing.T) {
		const poll = time.Second
		var l Loaded
		var refuse error
		apply := func(*Config) error { return refuse }
		c, err := l.Load(path, apply)
		must(t, err)
		loads := 0
		ctx, cancel := context.WithCancel(t.Context())
		go l.Watch(ctx, poll, new(sync.Mutex), func() *Config { return c }, func() {
			loads++
			_, _ = l.Load(path, apply)
		})
		wait := func(what string, want int, holds bool) {
			t.Helper()
			time.Sleep(5 * poll)
			synctest.Wait()
			if got := l.Holds(c); loads != want || got != holds {
				t.Errorf("%s: loaded %d times, held is %v; want %d, %v", what, loads, got, want, holds)
			}
		}
		time.Sleep(poll / 2)
		wait("nothing happened", 0, true)
		must(t, os.Remove(path))
		if _, err := l.Load(path, apply); err == nil {
			t.Error("a missing file was loaded")
		}
		wait("gone", 0, false)
		write(t, path, text)
		wait("back", 1, true)
		refuse = errors.New("no")
		if _, err := l.Load(path, apply); err == nil {
			t.Error("a refused file was loaded")
		}
		wait("refused again and again", 2, false)
		refuse = nil
		write(t, path, text+"\n")
		wait("changed", 3, true)
		cancel()
		synctest.Wait()
	})
}

// Two looks lie half of poll apart at least, and watches that begin at any time look at the same moment.
func TestUntilLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const poll = time.Second
		for range 100 {
			wait := untilLook(poll)
			at := time.Now().Add(wait)
			if wait < poll/2 || wait > 3*poll/2 || !at.Equal(at.Truncate(poll)) {
				t.Fatalf("at %v the next look is in %v; want a full second, half of one from now at least", time.Now(), wait)
			}
			time.Sleep(37 * time.Millisecond)
		}
	})
}
