package conf

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"maps"
	"os"
	"time"
)

// DefaultPoll is how often Watch looks.
const DefaultPoll = 2 * time.Second

// Watch calls changed when the contents of the files change: written in place, renamed over, or behind a swapped
// link. It returns when ctx ends. files is asked at each look, as a reload may name other modules; poll 0 is
// DefaultPoll.
//
// A change counts when two looks in a row read the same, so that a half-written file does not. That a file is missing
// or unreadable is no change, but a change in progress. It does not keep Watch from a change of another file: a module
// that is gone would else have every edit of the configuration wait for it, without a word in the log. Watch calls
// changed once for each change, whether or not the reload takes it.
//
// It calls changed for what the first looks read, too: what is loaded may be older than they are. A file that was
// written between the load and the first look was never loaded otherwise (TestWatchStartsLate).
func Watch(ctx context.Context, poll time.Duration, files func() []string, changed func()) {
	watch(ctx, poll, files, func() bool { return false }, changed)
}

// watch does what Watch does. It also calls changed for contents that have not changed, if again returns true.
func watch(ctx context.Context, poll time.Duration, files func() []string, again func() bool, changed func()) {
	if poll <= 0 {
		poll = DefaultPoll
	}
	ticker := time.NewTicker(poll)
	defer ticker.Stop()
	var reported map[string]sum
	before := sumsOf(files())
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		now := sumsOf(files())
		if maps.Equal(now, before) && (differ(now, reported) || again()) && ctx.Err() == nil {
			reported = now
			changed()
		}
		before = now
	}
}

// differ reports whether a file that can be read now has another sum than before, or had none.
func differ(now, before map[string]sum) bool {
	for path, s := range now {
		if s != before[path] && s != (sum{}) {
			return true
		}
	}
	return false
}

// sum is a digest over names and contents; its zero value is that of no readable files.
type sum [sha256.Size]byte

// digest reads all files. ok is false if one of them cannot be read now.
func digest(files []string) (s sum, ok bool) {
	sums := make(map[string]sum, len(files))
	for _, path := range files {
		one, err := fileSum(path)
		if err != nil {
			return sum{}, false
		}
		sums[path] = one
	}
	return digestOf(files, sums), true
}

// sumsOf returns the sum of each file. A file that cannot be read has none: whoever needs it reports that.
func sumsOf(files []string) map[string]sum {
	sums := map[string]sum{}
	for _, path := range files {
		sums[path], _ = fileSum(path)
	}
	return sums
}

// digestOf sums up the files, each by its own sum.
func digestOf(files []string, sums map[string]sum) sum {
	all := sha256.New()
	for _, path := range files {
		one := sums[path]
		io.WriteString(all, path+"\x00")
		all.Write(one[:])
	}
	return sum(all.Sum(nil))
}

// mostHashed is the most bytes of a file that are read for its sum: what is longer is no module, key or certificate.
const mostHashed = 64 << 20

// fileSum hashes one regular file: opening a FIFO would wait for ever. Of a file over mostHashed it hashes size and
// time: while 100 MB were read a few times, other requests' p99 was five times what it is.
func fileSum(path string) (s sum, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return s, err
	}
	if !info.Mode().IsRegular() {
		return s, os.ErrInvalid
	}
	if info.Size() > mostHashed {
		return sha256.Sum256([]byte(fmt.Sprint(info.Size(), info.ModTime().UnixNano()))), nil
	}
	f, err := os.Open(path)
	if err != nil {
		return s, err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return s, err
	}
	return sum(h.Sum(nil)), nil
}
