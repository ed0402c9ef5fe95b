// Package watchtest has a Watcher of a pool's workers for tests, which report the health themselves.
package watchtest

import "strings"

// Numbers records the numbers under which a pool's workers take health checks, by host. It implements
// [github.com/warmpath/warmpath/daemon/fleet/worker.Watcher], and checks nothing.
type Numbers map[string]uint64

// Watch records a worker's number.
func (n Numbers) Watch(id uint64, url, _ string) { n[strings.TrimPrefix(url, "http://")] = id }

// WatchHealth does nothing.
func (Numbers) WatchHealth(uint64) {}

// Unwatch does nothing.
func (Numbers) Unwatch(uint64) {}

// CheckSoon does nothing.
func (Numbers) CheckSoon(uint64) {}

// ScrapeSoon does nothing.
func (Numbers) ScrapeSoon(uint64) {}

// ListSoon does nothing.
func (Numbers) ListSoon(uint64) {}
