package kvstore

import (
	"errors"
	"log/slog"
	"runtime/debug"

	"github.com/warmpath/warmpath/cache/kvstore/arena"
)

// ErrTorn means that the shared memory was made shorter while a value was read or written in it.
var ErrTorn = errors.New("a process has truncated the shared memory; it is made anew once nobody reads it any more")

// Touch calls do, which reads or writes values in place. A worker may write to the segment, and so it can truncate it:
// the kernel then ends a process that touches what is gone. Touch returns ErrTorn in that case.
func Touch(do func()) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		if _, fault := p.(interface{ Addr() uintptr }); !fault { // the runtime's error of a fault has the address
			panic(p)
		}
		err = ErrTorn
	}()
	do()
	return nil
}

// tear is what is known of a segment that a worker has truncated. Its values are lost, and its memory is replaced once
// no call reads or writes there any more.
type tear struct {
	arena   *arena.Arena
	segment string
	log     *slog.Logger

	open   bool
	failed bool // the memory could not be made anew, which was logged
}

// found reports whether there is one. values are those that are lost.
func (t *tear) found(values int) bool {
	if t.open || !t.arena.IsTorn() {
		return t.open
	}
	t.open = true
	t.log.Error("a process has truncated the shared memory of the KV cache: its values are lost, and none is taken until "+
		"its readers are gone", "segment", t.segment, "values", values, "remedy", "find the worker that opens the segment "+
		"with O_TRUNC or truncates it, and restart that")
	return true
}

// mend replaces the memory.
func (t *tear) mend() {
	err := t.arena.Mend()
	switch {
	case err == nil:
		t.open = false
		t.log.Info("the shared memory of the KV cache is made anew", "segment", t.segment)
	case !t.failed:
		t.log.Error("the shared memory of the KV cache cannot be made anew", "segment", t.segment, "error", err, "remedy",
			"make room in /dev/shm, or restart this daemon")
	}
	t.failed = err != nil
}
