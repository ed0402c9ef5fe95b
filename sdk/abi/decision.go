package abi

// Values of wp_pick's low half that are no row.
const (
	Decline int32 = -1 // the host's fallback answers
	Reject  int32 = -2 // the client is turned away: see Header.RejectStatus
)

// Flags of a decision.
const (
	FlagBind uint16 = 1 << iota // bind the request's session to the chosen worker
	FlagOnly                    // no worker but the chosen one and those in the order area may get the request; since 1.2
)

// Pack makes wp_pick's result of a row index (or Decline or Reject), a reason of the strategy's own and flags.
func Pack(row int32, reason, flags uint16) uint64 {
	return uint64(flags)<<48 | uint64(reason)<<32 | uint64(uint32(row))
}

// Unpack undoes Pack.
func Unpack(v uint64) (row int32, reason, flags uint16) {
	return int32(uint32(v)), uint16(v >> 32), uint16(v >> 48)
}
