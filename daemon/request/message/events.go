package message

import (
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"strings"
)

// maxWords bounds the error of a worker that is read for its words.
const maxWords = 256 << 10

// faultNoEvents is for a worker that answers a stream's request without a stream, to a client that has the head of one.
var faultNoEvents = Fault{Status: 502, Kind: "upstream_error", Code: "no_stream", Cause: WorkerFailed,
	Message: "the worker did not answer with a stream of events; with server.keepalive off its answer would have come"}

// InEvents returns the answer as what follows the head of a stream of events that the client has already: a stream as
// it is, and every other answer as an error event, after which the stream ends.
func (o *Outbound) InEvents(in *Inbound) *Outbound {
	good := o.Status < 300
	if good && o.Stream != nil && IsEvents(o.Get("Content-Type")) && !Coded(o.Header) {
		o.Length = -1
		return o
	}
	text, _, _ := o.Whole(maxWords) // what came of it tells more than that it broke off
	f := faultNoEvents
	if !good {
		f = faultIn(o.Status, text)
	} else {
		in.Seen.End = f.Code
	}
	event := bytes.NewReader(f.Event(in.Endpoint.Shape, 0))
	return &Outbound{Status: f.Status, Stream: io.NopCloser(event), Length: -1}
}

// words are those of an error in JSON. Workers and this router write them at the top or in an object of their own.
type words struct {
	Message string `json:"message"`
	Type    string `json:"type"`
	Code    any    `json:"code"`
	Detail  any    `json:"detail"` // FastAPI's
}

// faultIn returns the error that a body reports, in whichever form.
func faultIn(status int, text []byte) Fault {
	var body struct {
		words
		Error json.RawMessage `json:"error"`
	}
	f := Fault{Status: status, Kind: "upstream_error"}
	if json.Unmarshal(text, &body) != nil {
		f.Message = strings.ToValidUTF8(string(text[:min(len(text), 500)]), "")
	}
	inner := body.words
	if json.Unmarshal(body.Error, &inner) != nil {
		_ = json.Unmarshal(body.Error, &inner.Message) // or it is a text
	}
	f.Message = cmp.Or(inner.Message, inText(inner.Detail), f.Message, "the worker gave no reason")
	f.Kind = cmp.Or(inner.Type, f.Kind)
	f.Code = inText(inner.Code)
	return f
}

// inText returns a value of JSON as a text, "" for none.
func inText(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	}
	text, _ := json.Marshal(v)
	return string(text)
}
