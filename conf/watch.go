package conf

import (
	"context"
	"maps"
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
	watch(ctx, poll, files, func(map[string]sum) bool { return false }, changed)
}

// watch does what Watch does. It also calls changed for contents that have not changed, if again returns true for them.
func watch(ctx context.Context, poll time.Duration, files func() []string, again func(map[string]sum) bool,
	changed func()) {
	if poll <= 0 {
		poll = DefaultPoll
	}
	timer := time.NewTimer(untilLook(poll))
	defer timer.Stop()
	var reported map[string]sum
	var known looks
	before := known.sumsOf(files())
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		timer.Reset(untilLook(poll))
		now := known.sumsOf(files())
		if maps.Equal(now, before) && (differ(now, reported) || again(now)) && ctx.Err() == nil {
			reported = now
			changed()
		}
		before = now
	}
}

// untilLook returns the time until the clock shows a multiple of poll. All watches of a process look at the same time:
// an idle process is woken once for all of them. It is half of poll at least, as a half-written file must have time to
// change.
func untilLook(poll time.Duration) time.Duration {
	now := time.Now()
	return now.Add(poll / 2).Truncate(poll).Add(poll).Sub(now)
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
