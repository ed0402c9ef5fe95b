package conf

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// What is below these is a wrong unit, as "2ms" for "2s": no network is faster to a client, and no worker's answer.
const (
	minClientTime = 100 * time.Millisecond
	minWorkerTime = 10 * time.Millisecond
)

// workerTime reports a time limit that no worker can keep, or an interval so short that the router would ask workers
// without a pause.
func (r *report) workerTime(path string, d time.Duration) {
	if d < minWorkerTime {
		r.add(path, fmt.Sprintf("%s is too short for any worker", d),
			fmt.Sprintf(`write how long, at least "%s", as "10s"`, minWorkerTime))
	}
}

// clientTime reports a time for a client's part that no client can keep.
func (r *report) clientTime(path string, d time.Duration) {
	if d < minClientTime {
		r.add(path, fmt.Sprintf("%s is too short for any client", d),
			fmt.Sprintf(`write how long, at least "%s", as "20s"`, minClientTime))
	}
}

// notNegative reports a time below zero. The text zero explains what zero means.
func (r *report) notNegative(path string, d time.Duration, zero string) {
	if d < 0 {
		r.add(path, "it is negative", `write "0s" `+zero)
	}
}

// between reports a count outside of low to high.
func (r *report) between(path string, n, low, high int, unit string) {
	if !within(n, low, high) {
		r.outOfRange(path, n, fmt.Sprintf("write %s from %d to %d", unit, low, high))
	}
}

func (r *report) outOfRange(path string, v any, remedy string) {
	r.add(path, fmt.Sprintf("%v is out of range", v), remedy)
}

// within reports whether v is from low to high. NaN is in no range.
func within[T cmp.Ordered](v, low, high T) bool { return v >= low && v <= high }

// oneOf reports a value that is not in the list of known ones.
func (r *report) oneOf(path, value string, known ...string) {
	if !slices.Contains(known, value) {
		r.add(path, fmt.Sprintf("%q is unknown", value), remedyFor(value, known))
	}
}

// unique reports a value that an earlier key holds already.
func (r *report) unique(seen map[string]string, value, path, remedy string) {
	if first, ok := seen[value]; ok {
		r.add(path, fmt.Sprintf("%q is %s already", value, first), remedy)
		return
	}
	seen[value] = path
}

// MaxID is how long a name or id may be.
const MaxID = 64

// name reports a text that cannot stand in metric labels, headers and logs.
func (r *report) name(path, s string) {
	if !IsName(s) {
		r.add(path, fmt.Sprintf("%q is no name", s), "write up to 64 of a-z, A-Z, 0-9, dot, dash and underscore")
	}
}

// IsName reports whether a text can be the name of a pool, a strategy or a key.
func IsName(s string) bool {
	const safe = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"
	return s != "" && len(s) <= MaxID && strings.Trim(s, safe) == ""
}

// patterns reports what is no pattern of models. It calls each with the others, and with the path of each.
func (r *report) patterns(path string, models []string, each func(at, pattern string)) {
	if len(models) == 0 {
		r.add(path, "it is empty", `write model names, "org/*" or "*"`)
	}
	for i, pattern := range models {
		at := elem(path, i)
		if r.lines[at] == 0 {
			at = path // the default
		}
		if star := strings.IndexByte(pattern, '*'); pattern == "" || star >= 0 && star != len(pattern)-1 {
			r.add(at, fmt.Sprintf("%q is no pattern", pattern), `write a model's name, "org/*" or "*"`)
			continue
		}
		if prefix, regular := strings.CutSuffix(pattern, ".*"); regular {
			r.add(at, fmt.Sprintf("%q is no pattern: a dot is a dot here", pattern), fmt.Sprintf("write %q", prefix+"*"))
			continue
		}
		each(at, pattern)
	}
}
