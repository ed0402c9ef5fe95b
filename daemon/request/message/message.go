package message

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/warmpath/warmpath/daemon/request/account"
	"github.com/warmpath/warmpath/daemon/request/epoch"
	"github.com/warmpath/warmpath/daemon/request/overflow"
	"github.com/warmpath/warmpath/daemon/request/record"
	"github.com/warmpath/warmpath/daemon/request/session"
	"github.com/warmpath/warmpath/daemon/transport/gate"
	"github.com/warmpath/warmpath/daemon/transport/upstream"
)

// Inbound is a client's request, free of any HTTP library's types. Body must stay unchanged until the answer's head
// has been returned, or its stream has been read to the end if there is a Tail. Then DropKept is to be called.
type Inbound struct {
	Epoch    *epoch.Epoch // in force when the request came in: it is served under no other
	Endpoint Endpoint     // of Method and the path as it came
	Method   string
	Path     string           // without the query, in the endpoint's spelling
	Query    string           // without the question mark
	Header   []upstream.Field // set it by SetHeader
	Body     []byte
	Tail     Tail           // what comes after Body, if that is only the beginning; nil = Body is all
	Left     int64          // bytes in Tail; -1 = not known
	Kept     *overflow.Body // has Body, which it maps; nil = Body is the front's

	ID      string       // of the request: passed on, logged and answered
	Remote  string       // the client's address, without port
	Host    string       // as the client called us
	TLS     bool         // it came over TLS
	Socket  bool         // it asks for a WebSocket, and so does what its worker gets
	lengths uint32       // of the names in Header, as SetHeader made it; 0 = not known
	Caller  *gate.Caller // whose key was shown

	Comments *Comments // to the client before its answer; nil = it gets none

	Trace Trace // set by the front's tracer
	Seen  Seen  // filled on the way

	// Account has the resources that the request holds. The package that made the Inbound ends its first work; nil =
	// nothing is recorded, and no limit applies.
	Account *account.Account

	Hash uint64 // of the path and the body, which a stream does without; 0 = Body is there
}

// DropKept forgets a body that is kept. Body may not be read any more.
func (in *Inbound) DropKept() {
	if in.Kept != nil {
		in.Kept.Close()
		in.Kept = nil
		in.Body = nil
	}
}

// SetHeader sets Header. It keeps which lengths the names have, so that most look-ups need not read a field.
func (in *Inbound) SetHeader(fields []upstream.Field) {
	in.Header = fields
	in.lengths = 1 << 31 // a name of 31 bytes or more
	for i := range fields {
		in.lengths |= 1 << min(len(fields[i].Name), 31)
	}
}

// mayHave returns false if the header has no field of that name for sure.
func (in *Inbound) mayHave(name string) bool {
	return in.lengths == 0 || in.lengths&(1<<min(len(name), 31)) != 0
}

// Tail is the rest of a request's body.
type Tail interface {
	io.Reader
	Passed() bool // part of it has been read: it cannot be sent again
}

// Why a client's body may fail. Inbound.Tail returns these.
var (
	ErrTooLarge  = errors.New("the body is over server.max_body_bytes")
	ErrSlowBody  = errors.New("the body came too slowly for server.read_timeout, or for 16 KiB a second")
	ErrPacked    = errors.New("the body cannot be unpacked")
	ErrGrows     = errors.New("the body is more than 100 times as long when it is unpacked")
	ErrNoDecoder = errors.New("other bodies of the client take all memory that there is to unpack them")
)

// Client returns the client that the request's resources are charged to: the caller's key, or without keys the
// network.
func (in *Inbound) Client() string {
	if in.Caller != nil && in.Caller.Name != "" {
		return in.Caller.Name
	}
	return account.Network(in.Remote)
}

// Seen is what became of a request: the record of its decision, and its end.
type Seen struct {
	record.Record
	Status   int32
	Retries  int32
	End      string       // how the answer ended, if not well
	Stream   bool         // the answer is a stream of events
	Logged   bool         // the candidates belong in the access log
	Passed   bool         // another worker than the first of the order answered, and Reason says why that one did
	Counted  bool         // requests_total has it already
	Comments uint32       // that the client got before its answer: its status was 200 then, whatever Status is
	Key      string       // name of the caller's key, "" without keys
	Others   fmt.Stringer // the shadows that have chosen another worker so far; nil = there are no shadows
	At       time.Time    // the time at which a Meter counts; zero = now
	Kept     any          // what a Keeper has of its decision; nil = nothing
}

// EndContinued is the end of an answer that another worker went on with, and that came to its end.
const EndContinued = "continued"

// Stored returns the name of a stored response, which includes the key that made it, if there are keys.
func (in *Inbound) Stored(id string) session.Name {
	return session.Name{Kind: session.Response, Tenant: in.Caller.Name, Owner: in.Caller.Name, ID: id}
}

// Opened returns the name of an opened session of the request's caller.
func (in *Inbound) Opened(id string) session.Name {
	return session.Name{Kind: session.Opened, Tenant: in.Caller.Name, Owner: in.Caller.Name, ID: id}
}

// MayUse reports whether the caller may use a model or an alias: by its name, or because it may use all of its targets.
func (in *Inbound) MayUse(model string) bool {
	if in.Caller.Allows(model) {
		return true
	}
	if in.Epoch == nil {
		return false
	}
	a := in.Epoch.Names.Find(model)
	if a == nil {
		return false
	}
	for _, t := range a.Targets {
		if !in.Caller.Allows(t.Model) {
			return false
		}
	}
	return true
}

// SpeaksAnthropic reports whether a client wants Anthropic's shapes on paths that OpenAI's API has too.
func (in *Inbound) SpeaksAnthropic() bool { return in.Get("anthropic-version") != "" }

// Get returns the first value of a header field.
func (in *Inbound) Get(name string) string {
	if !in.mayHave(name) {
		return ""
	}
	return upstream.Header(in.Header).Get(name)
}

// Lookup returns the first value of a header field, and whether there is one.
func (in *Inbound) Lookup(name string) (value string, ok bool) {
	if !in.mayHave(name) {
		return "", false
	}
	return upstream.Header(in.Header).Lookup(name)
}

// All returns the values of a header field, several lines joined.
func (in *Inbound) All(name string) string {
	if !in.mayHave(name) {
		return ""
	}
	joined := ""
	for _, f := range in.Header {
		switch {
		case len(f.Name) != len(name) || !strings.EqualFold(f.Name, name):
		case joined == "":
			joined = f.Value
		default:
			joined += ", " + f.Value
		}
	}
	return joined
}

// Outbound is the answer. Stream, if set, is read to its end or closed; then Body is empty.
type Outbound struct {
	Status int
	Header []upstream.Field
	Body   []byte
	Stream io.ReadCloser
	Length int64 // of Stream; -1 = not known

	Memory interface{ Reuse() } // the exchange whose memory the answer is in; nil = none, and nothing is used again
}

// Release gives the memory of an answer back that has been passed on. After it, only Body may be used.
func (o *Outbound) Release() {
	if o.Memory != nil {
		o.Memory.Reuse()
	}
}

// Get returns the first value of a header field.
func (o *Outbound) Get(name string) string { return upstream.Header(o.Header).Get(name) }

// Set appends a header field.
func (o *Outbound) Set(name, value string) {
	o.Header = append(o.Header, upstream.Field{Name: name, Value: value})
}

// The fields in which the clients of AWS and of Anthropic find the request's id. OpenAI's find it in X-Request-Id.
const (
	HeaderAWSRequest       = "x-amzn-RequestId"
	HeaderAnthropicRequest = "Request-Id"
)

// SetOnce appends a header field, except that of the request's id, which the front sets on every answer.
func (o *Outbound) SetOnce(name, value string) {
	if name != HeaderAWSRequest {
		o.Set(name, value)
	}
}

// Whole reads an answer to its end, or its first limit bytes: then it is cut.
func (o *Outbound) Whole(limit int64) (text []byte, cut bool, err error) {
	if o.Stream == nil {
		return o.Body, false, nil
	}
	defer o.Stream.Close()
	text, err = io.ReadAll(io.LimitReader(o.Stream, limit+1))
	if int64(len(text)) > limit {
		return text[:limit], true, err
	}
	return text, false, err
}
