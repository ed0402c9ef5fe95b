package exchange

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/warmpath/warmpath/daemon/request/limit"
	"github.com/warmpath/warmpath/daemon/transport/upstream"
)

// tellLimits writes what is left of the key's limits into the answer: in OpenAI's fields, and on /v1/messages in
// Anthropic's. A worker's own fields of these names are left out.
func (r *request) tellLimits(out *Outbound) {
	if r.limits == nil || r.shape() == AWS {
		return
	}
	out.Header = slices.DeleteFunc(out.Header, func(f upstream.Field) bool { return isRateLimit(f.Name) })
	now := time.Now()
	requests, tokens := r.limits.Rooms(now)
	tell := tellOpenAI
	if r.shape() == Anthropic {
		tell = tellAnthropic
	}
	tell(out, "requests", requests, now)
	tell(out, "tokens", tokens, now)
}

// isRateLimit reports whether a field is one that tellLimits writes.
func isRateLimit(name string) bool {
	const openAI, anthropic = "x-ratelimit-", "anthropic-ratelimit-"
	return len(name) > len(openAI) && strings.EqualFold(name[:len(openAI)], openAI) ||
		len(name) > len(anthropic) && strings.EqualFold(name[:len(anthropic)], anthropic)
}

// tellOpenAI writes OpenAI's fields. A time is "6m0s", "1s", "250ms".
func tellOpenAI(out *Outbound, of string, room limit.Room, _ time.Time) {
	if room.Limit == 0 {
		return
	}
	out.Set("x-ratelimit-limit-"+of, strconv.Itoa(room.Limit))
	out.Set("x-ratelimit-remaining-"+of, strconv.Itoa(room.Remaining))
	out.Set("x-ratelimit-reset-"+of, roundUp(room.Reset, time.Millisecond).String())
}

// tellAnthropic writes Anthropic's fields. A time is one of the day, in RFC 3339.
func tellAnthropic(out *Outbound, of string, room limit.Room, now time.Time) {
	if room.Limit == 0 {
		return
	}
	out.Set("anthropic-ratelimit-"+of+"-limit", strconv.Itoa(room.Limit))
	out.Set("anthropic-ratelimit-"+of+"-remaining", strconv.Itoa(room.Remaining))
	at := now.Add(room.Reset + time.Second - 1).UTC().Truncate(time.Second)
	out.Set("anthropic-ratelimit-"+of+"-reset", at.Format(time.RFC3339))
}

// roundUp returns the least multiple of a unit that is not below d.
func roundUp(d, unit time.Duration) time.Duration { return (d + unit - 1) / unit * unit }
