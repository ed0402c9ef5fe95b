package admission

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/warmpath/warmpath/daemon/request/limit"
	"github.com/warmpath/warmpath/daemon/request/message"
	"github.com/warmpath/warmpath/daemon/transport/upstream"
)

// tellLimits writes what is left of the requests and of the tokens of a key into an answer: in OpenAI's fields, and on
// /v1/messages in Anthropic's. AWS has none. A worker's own fields of these names are left out.
func tellLimits(out *message.Outbound, s message.Shape, now time.Time, left [2]limit.Balance) {
	if s == message.AWS {
		return
	}
	out.Header = slices.DeleteFunc(out.Header, func(f upstream.Field) bool { return isRateLimit(f.Name) })
	for i, of := range [...]string{"requests", "tokens"} {
		switch b := left[i]; {
		case b.Limit == 0:
		case s == message.Anthropic:
			tellAnthropic(out, of, b, now)
		default:
			tellOpenAI(out, of, b)
		}
	}
}

// isRateLimit reports whether a field is one that tellLimits writes.
func isRateLimit(name string) bool {
	const openAI, anthropic = "x-ratelimit-", "anthropic-ratelimit-"
	return len(name) > len(openAI) && strings.EqualFold(name[:len(openAI)], openAI) ||
		len(name) > len(anthropic) && strings.EqualFold(name[:len(anthropic)], anthropic)
}

// tellOpenAI writes OpenAI's fields. A time is "6m0s", "1s", "250ms".
func tellOpenAI(out *message.Outbound, of string, b limit.Balance) {
	out.Set("x-ratelimit-limit-"+of, strconv.Itoa(b.Limit))
	out.Set("x-ratelimit-remaining-"+of, strconv.Itoa(b.Remaining))
	const unit = time.Millisecond
	out.Set("x-ratelimit-reset-"+of, ((b.Reset + unit - 1) / unit * unit).String())
}

// tellAnthropic writes Anthropic's fields. A time is one of the day, in RFC 3339.
func tellAnthropic(out *message.Outbound, of string, b limit.Balance, now time.Time) {
	out.Set("anthropic-ratelimit-"+of+"-limit", strconv.Itoa(b.Limit))
	out.Set("anthropic-ratelimit-"+of+"-remaining", strconv.Itoa(b.Remaining))
	at := now.Add(b.Reset + time.Second - 1).UTC().Truncate(time.Second)
	out.Set("anthropic-ratelimit-"+of+"-reset", at.Format(time.RFC3339))
}
