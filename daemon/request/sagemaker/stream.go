package sagemaker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"

	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"
	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream/eventstreamapi"
)

// StreamType is the Content-Type of an event stream.
const StreamType = "application/vnd.amazon.eventstream"

// StreamError is an exception inside a stream.
type StreamError struct {
	Type    string // ModelStreamError or InternalStreamFailure
	Code    string // ErrorCode; ModelStreamError only
	Message string
}

// ModelBroke returns what a worker's fault becomes: the ErrorCode is ModelInvocationTimeExceeded if err is a timeout,
// else StreamBroken. The text of err, which may name addresses, is left out.
func ModelBroke(err error) StreamError {
	var t net.Error
	if errors.Is(err, context.DeadlineExceeded) || errors.As(err, &t) && t.Timeout() {
		return StreamError{
			Type:    "ModelStreamError",
			Code:    "ModelInvocationTimeExceeded",
			Message: "the model did not go on with its answer in time",
		}
	}
	return StreamError{
		Type:    "ModelStreamError",
		Code:    "StreamBroken",
		Message: "the model broke off in the middle of its answer",
	}
}

// InternalStreamFailure returns what a fault of the router becomes, such as that it is stopping.
func InternalStreamFailure(message string) StreamError {
	return StreamError{Type: "InternalStreamFailure", Message: clean(message)}
}

// maxPart bounds the bytes of one event: AWS sends up to 1 MiB, but what is here is held in memory once more.
const maxPart = 64 << 10

// minPart is read even into a smaller buffer, so that a reader of few bytes does not make an event of each of them.
const minPart = 1 << 10

// A message is 12 bytes of prelude, headers, payload and 4 bytes of checksum.
var (
	partHeaders = eventstream.Headers{
		{Name: eventstreamapi.EventTypeHeader, Value: eventstream.StringValue("PayloadPart")},
		{Name: eventstreamapi.ContentTypeHeader, Value: eventstream.StringValue("application/octet-stream")},
		{Name: eventstreamapi.MessageTypeHeader, Value: eventstream.StringValue(eventstreamapi.EventMessageType)},
	}
	overhead = 16 + headersLen(partHeaders)
)

func headersLen(h eventstream.Headers) int {
	var b bytes.Buffer
	_ = eventstream.EncodeHeaders(&b, h)
	return b.Len()
}

// Stream returns a worker's answer as an event stream: what one read of the source gave is one PayloadPart. An error
// of the source becomes an exception, after which the stream ends as a whole one does. Not safe for concurrent use.
type Stream struct {
	src  io.ReadCloser
	name func(error) StreamError
	enc  *eventstream.Encoder
	raw  []byte
	out  bytes.Buffer // encoded, not yet read
	err  error        // after out
}

// NewStream wraps the body of a worker's answer. name returns what an error of src becomes; nil means ModelBroke.
func NewStream(src io.ReadCloser, name func(error) StreamError) *Stream {
	if name == nil {
		name = ModelBroke
	}
	return &Stream{src: src, name: name, enc: eventstream.NewEncoder()}
}

// Read returns at most one event, whole if p has room for it.
func (s *Stream) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if s.out.Len() == 0 && s.err == nil {
		s.readPart(min(max(len(p)-overhead, minPart), maxPart))
	}
	if s.out.Len() == 0 {
		return 0, s.err // nil if the source gave nothing
	}
	return s.out.Read(p)
}

// readPart reads at most n bytes of the source into one event.
func (s *Stream) readPart(n int) {
	if cap(s.raw) < n {
		s.raw = make([]byte, n)
	}
	got, err := s.src.Read(s.raw[:n])
	if got > 0 {
		s.encode(partHeaders, s.raw[:got])
	}
	if err == nil {
		return
	}
	s.err = io.EOF
	if err != io.EOF {
		s.fail(s.name(err))
	}
}

// fail appends an exception.
func (s *Stream) fail(e StreamError) {
	payload, _ := json.Marshal(struct {
		Message   string `json:"Message"`
		ErrorCode string `json:"ErrorCode,omitempty"`
	}{e.Message, e.Code})
	s.encode(eventstream.Headers{
		{Name: eventstreamapi.ExceptionTypeHeader, Value: eventstream.StringValue(e.Type)},
		{Name: eventstreamapi.ContentTypeHeader, Value: eventstream.StringValue("application/json")},
		{Name: eventstreamapi.MessageTypeHeader, Value: eventstream.StringValue(eventstreamapi.ExceptionMessageType)},
	}, payload)
}

func (s *Stream) encode(h eventstream.Headers, payload []byte) {
	if err := s.enc.Encode(&s.out, eventstream.Message{Headers: h, Payload: payload}); err != nil {
		s.err = err // BUG only: names and sizes are ours
	}
}

// Close closes the source.
func (s *Stream) Close() error { return s.src.Close() }

var _ io.ReadCloser = (*Stream)(nil)
