//go:build wasip1

// Command guest is a minimal strategy written against the raw contract, without the SDK: fewest in flight wins. Its
// options change how it behaves, so that one build serves several tests.
package main

import (
	"runtime"
	"unsafe"

	"github.com/warmpath/warmpath/sdk/abi"
)

var (
	frame    []byte
	keep     []byte
	allocate bool
)

func main() {}

//go:wasmexport warmpath_abi_1_2
func marker() {}

//go:wasmexport wp_frame
func wpFrame(n int32) uint32 {
	frame = make([]byte, abi.FrameSize(int(n)))
	return uint32(uintptr(unsafe.Pointer(unsafe.SliceData(frame))))
}

//go:wasmexport wp_configure
func wpConfigure(n int32) int32 {
	for b := frame[:n]; len(b) > 0; {
		k, v, rest, ok := abi.NextOption(b)
		if !ok {
			return abi.ErrInvalid
		}
		b = rest
		switch k {
		case "allocate":
			allocate = v == "true"
		default:
			return abi.ErrNotFound
		}
	}
	return 0
}

//go:wasmexport wp_pick
func wpPick() uint64 {
	h := (*abi.Header)(unsafe.Pointer(unsafe.SliceData(frame)))
	rows := unsafe.Slice((*abi.Row)(unsafe.Pointer(&frame[h.HeaderBytes])), h.Rows)
	if allocate {
		keep = make([]byte, 1024)
	}
	best := 0
	for i := range rows {
		if rows[i].InFlight < rows[best].InFlight {
			best = i
		}
	}
	return abi.Pack(int32(best), 1, 0)
}

//go:wasmexport wp_maint
func wpMaint() { runtime.Gosched() }
