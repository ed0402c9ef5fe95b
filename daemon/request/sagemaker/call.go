package sagemaker

import (
	"net/url"
	"strings"
)

// The API's fields of a head. Clients spell them in three ways, which differ in case only.
const (
	HeaderSession       = "X-Amzn-SageMaker-Session-Id"         // request: NEW_SESSION or an id
	HeaderNewSession    = "X-Amzn-SageMaker-New-Session-Id"     // answer: see FormatNew
	HeaderClosedSession = "X-Amzn-SageMaker-Closed-Session-Id"  // answer: the id
	HeaderContentType   = "X-Amzn-SageMaker-Content-Type"       // answer in a stream: the type of the events' payload
	HeaderVariant       = "x-Amzn-Invoked-Production-Variant"   // answer
	HeaderPrefixAware   = "X-Amzn-SageMaker-Prefix-Aware-Id"    // request
	HeaderAccept        = "X-Amzn-SageMaker-Accept"             // request on the stream path
	HeaderAdapter       = "X-Amzn-SageMaker-Adapter-Identifier" // request: vLLM takes it for the model
	HeaderInvocation    = "Amz-Sdk-Invocation-Id"               // request: the same in all attempts of a call
	newSession          = "NEW_SESSION"
	maxEndpoint         = 63
	maxPrefixAware      = 64
	maxInvocation       = 128 // SDKs send UUIDs
	closeWord           = "CLOSE"
	closeSessionWord    = "CLOSE_SESSION"
	invocations         = "/invocations"
	invocationsInStream = "/invocations-response-stream"
)

// Op is what a call does to a session.
type Op uint8

const (
	None  Op = iota // no session
	Open            // NEW_SESSION, in the header or as the body's requestType
	Use             // the id of a session
	Close           // the same, with requestType CLOSE or CLOSE_SESSION
)

// String returns the operation's name in logs and metrics.
func (o Op) String() string { return [...]string{"none", "open", "use", "close", "?"}[min(o, 4)] }

// Call is what the path and the header of a request ask for.
type Call struct {
	Endpoint      string // decoded; "" on the plain path /invocations
	Stream        bool   // the answer is an event stream
	Op            Op
	InBody        bool   // Op stands in the body: a worker without sessions of its own will refuse it
	Session       string // the id, checked; "" for None and Open
	Accept        string // what the worker is to be sent as Accept
	PrefixAwareID string // salts the prefix index per application
	InvocationID  string // "" = none, or one that no SDK sends
}

// Path parses a request's path, as it came: /endpoints/{name}/invocations or .../invocations-response-stream.
// Read checks the name.
func Path(path string) (endpoint string, stream, ok bool) {
	rest, ok := strings.CutPrefix(path, "/endpoints/")
	if !ok {
		return "", false, false
	}
	at := strings.IndexByte(rest, '/')
	if at < 0 {
		return "", false, false
	}
	endpoint = rest[:at]
	switch rest[at:] {
	case invocations:
	case invocationsInStream:
		stream = true
	default:
		return "", false, false
	}
	if decoded, err := url.PathUnescape(endpoint); err == nil {
		endpoint = decoded
	}
	return endpoint, stream, true
}

// Read parses a request's head. lookup returns the value of a field, whatever the case of its name, and whether
// it is there; requestType is the body's, as RequestType finds it. The path is one of Path's, or another that takes
// the same fields (/invocations).
func Read(path string, lookup func(name string) (value string, ok bool), requestType string) (Call, *Error) {
	get := func(name string) string { value, _ := lookup(name); return value }
	endpoint, stream, named := Path(path)
	c := Call{Endpoint: endpoint, Stream: stream, Accept: get("Accept")}
	if named && !validName(endpoint, maxEndpoint) {
		return c, ValidationError("the endpoint's name must be letters, digits and inner hyphens, at most 63")
	}
	if stream {
		c.Accept = get(HeaderAccept)
	}
	c.PrefixAwareID = get(HeaderPrefixAware)
	if c.PrefixAwareID != "" && !printable(c.PrefixAwareID, maxPrefixAware) {
		return c, ValidationError(HeaderPrefixAware +
			" must be 1 to 64 printable ASCII characters that do not begin with a blank")
	}
	if id := get(HeaderInvocation); printable(id, maxInvocation) {
		c.InvocationID = id
	}
	id, ok := lookup(HeaderSession)
	if ok && id == "" { // a client that lost its id must learn of it: without a session its state seems to be gone
		return c, ValidationError(HeaderSession +
			" is blank; send NEW_SESSION or the id of a session, or leave the field out")
	}
	return c, c.session(id, requestType)
}

// session sets Op and Session from the header and the body's requestType together. Any other requestType is the
// application's.
func (c *Call) session(header, requestType string) *Error {
	opens, closes := requestType == newSession, requestType == closeWord || requestType == closeSessionWord
	c.InBody = opens || closes
	switch {
	case header == newSession && closes, header == "" && closes:
		return ValidationError(requestType + " needs the id of a session in " + HeaderSession)
	case header != "" && header != newSession && !ValidID(header):
		return ValidationError(HeaderSession +
			" must be NEW_SESSION or an id of letters, digits and inner hyphens, at most 256")
	case header == newSession || header == "" && opens:
		if c.Stream {
			return ValidationError("NEW_SESSION is not allowed with a response stream; open the session with InvokeEndpoint")
		}
		c.Op = Open
	case opens:
		return ValidationError("the request is NEW_SESSION in its body and names a session in " + HeaderSession +
			"; send one of them")
	case closes:
		c.Op, c.Session = Close, header
	case header != "":
		c.Op, c.Session = Use, header
	}
	return nil
}

// printable reports a match of the pattern \S[\p{Print}]*, whose \p{Print} is Java's: ASCII from blank to tilde.
func printable(s string, most int) bool {
	if s == "" || len(s) > most || s[0] == ' ' {
		return false
	}
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}
