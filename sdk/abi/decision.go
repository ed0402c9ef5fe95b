package abi

import "math"

// Values of wp_pick's low half that are no row.
const (
	Decline int32 = -1 // the host's fallback answers
	Reject  int32 = -2 // the client is turned away: see Header.RejectStatus
	Hold    int32 = -3 // the request waits for a better worker: see Header.HoldMillis; since 1.2
)

// Flags of a decision.
const (
	FlagBind uint16 = 1 << iota // bind the request's session to the chosen worker
	FlagOnly                    // no worker but the chosen one and those in the order area may get the request; since 1.2
)

// Pack makes wp_pick's result of a row index (or Decline, Reject or Hold), a reason of the strategy's own and flags.
// wp_filter's has a number of rows (or Decline or Reject) and a reason.
func Pack(row int32, reason, flags uint16) uint64 {
	return uint64(flags)<<48 | uint64(reason)<<32 | uint64(uint32(row))
}

// PackClass makes wp_classify's result.
func PackClass(class int32, weight float32) uint64 {
	return uint64(math.Float32bits(weight))<<32 | uint64(uint32(class))
}

// UnpackClass undoes PackClass.
func UnpackClass(v uint64) (class int32, weight float32) {
	return int32(uint32(v)), math.Float32frombits(uint32(v >> 32))
}

// Unpack undoes Pack.
func Unpack(v uint64) (row int32, reason, flags uint16) {
	return int32(uint32(v)), uint16(v >> 32), uint16(v >> 48)
}
