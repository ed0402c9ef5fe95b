package daemon

import (
	"io"
	"slices"
	"strings"
	"time"

	"github.com/warmpath/warmpath/daemon/gate"
	"github.com/warmpath/warmpath/daemon/upstream"
)

// Inbound is a client's request, free of any HTTP library's types. Body must stay unchanged until the answer has ended.
type Inbound struct {
	Method string
	Path   string // without the query
	Query  string // without the question mark
	Header []upstream.Field
	Body   []byte
	Tail   io.Reader // what comes after Body, if that is only the beginning
	Left   int64     // bytes in Tail; -1 = not known

	ID     string       // of the request: passed on, logged and answered
	Remote string       // the client's address, without port
	Host   string       // as the client called us
	TLS    bool         // it came over TLS
	Caller *gate.Caller // whose key was shown

	Seen Seen // filled on the way, for the access log
}

// Seen is what became of a request.
type Seen struct {
	Status          int
	Model           string
	Pool, Worker    string
	Strategy        string
	Fallback        string
	Reason          string // why its worker was chosen; filled for the access log alone
	Session         string // the kind of the session that it belongs to; "" = none
	Matched, Blocks int    // leading blocks of the prompt that the worker was believed to hold, and all
	Retries         int
	First           time.Duration // arrival to the first byte of a successful answer's body; 0 = none came
	Tokens          int           // generated, if the worker said so
	Prompt, Cached  int           // tokens of the prompt, and those that the worker found in its cache, as it counts
	Counted         bool          // Prompt is known
	CachedKnown     bool          // Cached is known
	Stream          bool          // the answer is a stream of events
	End             string        // how the answer ended, if not well

	counted bool // in requests_total
}

// get returns the first value of a header field.
func (in *Inbound) get(name string) string { return upstream.Header(in.Header).Get(name) }

// lookup is get that tells an empty field from none.
func (in *Inbound) lookup(name string) (value string, ok bool) {
	return upstream.Header(in.Header).Lookup(name)
}

// all returns the values of a header field, several lines joined.
func (in *Inbound) all(name string) string {
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
}

// get returns the first value of a header field.
func (o *Outbound) get(name string) string { return upstream.Header(o.Header).Get(name) }

func (o *Outbound) set(name, value string) {
	o.Header = append(o.Header, upstream.Field{Name: name, Value: value})
}

// ours tells of a field that concerns one connection only (RFC 9110, section 7.6.1), or that we set ourselves. The lengths
// sort out most names without a comparison.
func ours(name string) bool {
	switch len(name) {
	case 2:
		return strings.EqualFold(name, "te")
	case 4:
		return strings.EqualFold(name, "host") || strings.EqualFold(name, "date")
	case 6:
		return strings.EqualFold(name, "expect") || strings.EqualFold(name, "server")
	case 7:
		return strings.EqualFold(name, "trailer") || strings.EqualFold(name, "upgrade")
	case 10:
		return strings.EqualFold(name, "connection") || strings.EqualFold(name, "keep-alive")
	case 14:
		return strings.EqualFold(name, "content-length")
	case 16:
		return strings.EqualFold(name, "proxy-connection")
	case 17:
		return strings.EqualFold(name, "transfer-encoding")
	case 18:
		return strings.EqualFold(name, "proxy-authenticate")
	case 19:
		return strings.EqualFold(name, "proxy-authorization")
	}
	return false
}

// replaced tells of a client's field that the worker gets from us, or not at all.
func (e *exchange) replaced(name string) bool {
	switch len(name) {
	case 6:
		return strings.EqualFold(name, "cookie") && e.d.state.Load().conf.Sessions.Cookie != ""
	case 9:
		return e.in.Caller.Name != "" && strings.EqualFold(name, "x-api-key")
	case 12:
		return strings.EqualFold(name, "x-request-id")
	case 13:
		return (e.in.Caller.Name != "" || e.pool.key() != "") && strings.EqualFold(name, "authorization")
	case 15:
		return strings.EqualFold(name, "accept-encoding") || strings.EqualFold(name, "x-forwarded-for")
	case 16:
		return strings.EqualFold(name, "x-forwarded-host")
	case 17:
		return strings.EqualFold(name, "x-forwarded-proto")
	}
	return len(name) > 11 && strings.EqualFold(name[:11], "x-warmpath-")
}

// header lists the fields that a worker gets. Answers are read on their way, so they must not be compressed.
func (e *exchange) header() []upstream.Field {
	in := e.in
	named := connectionTokens(in.Header)
	out := make([]upstream.Field, 0, len(in.Header)+6)
	for _, f := range in.Header {
		if ours(f.Name) || e.replaced(f.Name) || e.call != nil && e.call.Strip(f.Name, f.Value) || named != nil && named[strings.ToLower(f.Name)] {
			continue
		}
		out = append(out, f)
	}
	proto := "http"
	if in.TLS {
		proto = "https"
	}
	xff, xproto, xhost := gate.Forwarded(in.all, in.Remote, proto, in.Host)
	out = append(out, upstream.Field{Name: "Accept-Encoding", Value: "identity"}, upstream.Field{Name: "X-Request-Id", Value: in.ID},
		upstream.Field{Name: "X-Forwarded-For", Value: xff}, upstream.Field{Name: "X-Forwarded-Proto", Value: xproto},
		upstream.Field{Name: "X-Forwarded-Host", Value: xhost})
	if key := e.pool.key(); key != "" {
		out = append(out, upstream.Field{Name: "Authorization", Value: "Bearer " + key})
	}
	return e.sessionFields(out)
}

// connectionTokens are the fields that a Connection header declares hop-by-hop.
func connectionTokens(in []upstream.Field) map[string]bool {
	var named map[string]bool
	for _, f := range in {
		if len(f.Name) != len("connection") || !strings.EqualFold(f.Name, "connection") {
			continue
		}
		for token := range strings.SplitSeq(f.Value, ",") {
			token = strings.ToLower(strings.TrimSpace(token))
			if token == "" || token == "close" || token == "keep-alive" {
				continue
			}
			if named == nil {
				named = map[string]bool{}
			}
			named[token] = true
		}
	}
	return named
}

// ourOwn tells of a field that only this router may say of an answer.
func ourOwn(name string) bool {
	return len(name) == 12 && strings.EqualFold(name, "x-request-id") || len(name) > 11 && strings.EqualFold(name[:11], "x-warmpath-")
}

// forClient appends the worker's fields that a client gets. CORS is ours to answer.
func forClient(out []upstream.Field, h upstream.Header) []upstream.Field {
	out = slices.Grow(out, len(h))
	named := connectionTokens(h)
	for _, f := range h {
		if ours(f.Name) || gate.IsCORS(f.Name) || ourOwn(f.Name) || named != nil && named[strings.ToLower(f.Name)] {
			continue
		}
		out = append(out, f)
	}
	return out
}
