package sdk

import "github.com/warmpath/warmpath/sdk/abi"

// Decision is what a strategy answers, in the form in which it crosses the sandbox: see [abi.Pack].
type Decision uint64

const (
	// Decline leaves the choice to the host: the bound worker, else the longest match that is not overloaded, else
	// the fewest in flight.
	Decline = Decision(0xffff_ffff)
	// Reject answers the client with 429 and Retry-After, in the host's words. [Request.Reject] sets them.
	Reject = Decision(0xffff_fffe)

	hold = Decision(0xffff_fffd) // see Request.Hold
)

// To chooses worker i. An index that is no worker is answered by the host's fallback and counted as bad_index.
func To(i int) Decision { return Decision(abi.Pack(int32(i), 0, 0)) }

// Because adds the reason, which the operator sees in explanations and logs.
func (d Decision) Because(r Reason) Decision {
	return d&^(0xffff<<32) | Decision(r)<<32
}

// Bind asks the host to keep the request's session with the chosen worker from now on.
func (d Decision) Bind() Decision { return d | Decision(abi.FlagBind)<<48 }

// Only keeps the request to the chosen worker and those that [Request.Then] has named: if they fail or take no request,
// no other worker gets it; a [Ranking] names its four best. While the module itself fails, the host chooses, unless the
// operator has set strategies.NAME.on_failure = "reject". A session that is bound goes to its worker without asking.
func (d Decision) Only() Decision { return d | Decision(abi.FlagOnly)<<48 }

// Row is the chosen worker's index, or [abi.Decline], [abi.Reject] or [abi.Hold].
func (d Decision) Row() int { return int(int32(uint32(d))) }

// Reason is what Because set, 0 without.
func (d Decision) Reason() Reason { return Reason(d >> 32) }

// Binds reports whether Bind was asked for.
func (d Decision) Binds() bool { return uint16(d>>48)&abi.FlagBind != 0 }

// IsOnly reports whether Only was asked for.
func (d Decision) IsOnly() bool { return uint16(d>>48)&abi.FlagOnly != 0 }
