//go:build !linux

package arena

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
)

func mapAnonymous(size int64) ([]byte, error) { return make([]byte, size), nil }

func unmapAnonymous([]byte) error { return nil }

func populate(context.Context, []byte) {}

// segment exists on Linux only, like /dev/shm and write leases.
type segment struct {
	mem      []byte
	attached bool
}

// RemoveOrphans does nothing: there are no segments here.
func RemoveOrphans(string, *slog.Logger) {}

func openSegment(c Config, _ int64) (*segment, error) {
	return nil, fmt.Errorf("arena: segment %q: memory shared with workers needs Linux; this is %s", c.Segment,
		runtime.GOOS)
}

func (*segment) tend() {}

func (*segment) isTorn() bool { return false }

func (*segment) mend() error { return nil }

func (*segment) close() (bool, error) { return false, nil }
