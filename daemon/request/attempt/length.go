package attempt

import (
	"bytes"
	"cmp"
	"net/http"
	"strconv"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/judge"
	"github.com/warmpath/warmpath/daemon/request/journal"
	"github.com/warmpath/warmpath/daemon/request/message"
	"github.com/warmpath/warmpath/daemon/request/names"
	"github.com/warmpath/warmpath/daemon/request/route"
)

// lengthWords are how engines say that a request is longer than their model, by --max-model-len: vLLM, SGLang, and
// LiteLLM before them. What follows mostly names the length.
var lengthWords = [...]string{"maximum context length", "model's context length", "maximum model length",
	"context_length_exceeded", "ContextWindowExceeded"}

// saysTooLong reports whether a refusal is for the request's length, and returns the length that it names, 0 if none.
func saysTooLong(text []byte) (length int, ok bool) {
	for _, words := range lengthWords {
		_, rest, found := bytes.Cut(text, []byte(words))
		if !found {
			continue
		}
		rest = bytes.TrimLeft(rest[:min(len(rest), 64)], " :=(ofisnly")
		digits := 0
		for digits < len(rest) && rest[digits]-'0' <= 9 {
			digits++
		}
		length, _ = strconv.Atoi(string(rest[:min(digits, 10)]))
		return length, true
	}
	return 0, false
}

// outgrown ends an attempt whose worker refuses the request for its length, if another one of the same model is longer.
// That is done once: the next refusal goes to the client. nil: this one does.
func (d draft) outgrown(text []byte) *Failure {
	r := d.r
	if d.resp.Status != http.StatusBadRequest || d.h.outgrew || !d.h.rule.Others(1) || r.Consumed() {
		return nil
	}
	said, ok := saysTooLong(text)
	if !ok {
		return nil
	}
	workers, now := r.Pool.Workers, time.Now()
	length := cmp.Or(workers.Length(d.a.Trip.Worker(), r.Read.Req.Model), said)
	if length == 0 || !d.h.choice.KeepLonger(length, now) || !workers.MayRetry(now) {
		return nil
	}
	d.h.outgrew = true
	return d.discard(judge.Outcome{Kind: judge.Answered, Rejected: true},
		&Failure{Reason: journal.TooShort, Fault: message.FaultUpstream, paid: true})
}

// outgrewModel ends an attempt whose worker refuses the request for its length, if a fallback is to serve it.
func (d draft) outgrewModel(text []byte) *Failure {
	if d.r.Alias == nil || d.resp.Status != http.StatusBadRequest {
		return nil
	}
	if _, ok := saysTooLong(text); !ok || !d.r.MayFall(names.Context, d.h.choice.Binding()) {
		return nil
	}
	return d.discard(judge.Outcome{Kind: judge.Answered, Rejected: true},
		&Failure{Reason: journal.TooShort, Fault: message.FaultUpstream, Grade: route.GradeFinal, Falls: names.Context})
}
