//go:build !linux

package host

import "time"

// threadID returns 0: threads are not measured here.
func threadID() int { return 0 }

// threadTime returns false: threads are not measured here.
func threadTime(int) (time.Duration, bool) { return 0, false }
