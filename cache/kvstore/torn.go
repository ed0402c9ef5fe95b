package kvstore

import (
	"errors"
	"runtime/debug"
)

// ErrTorn means that the shared memory was made shorter while a value was read or written in it.
var ErrTorn = errors.New("a process has truncated the shared memory; it is made anew once nobody reads it any more")

// Touch calls do, which reads or writes values in place. A worker may write to the segment, and so it can truncate it:
// the kernel then ends a process that touches what is gone. Under Touch that is ErrTorn.
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
