package daemon

import (
	"io"
	"strings"

	"github.com/warmpath/warmpath/daemon/upstream"
)

// Inbound is a client's request, free of any HTTP library's types. Body must stay unchanged until the answer has ended.
type Inbound struct {
	Method string
	Path   string // without the query
	Query  string // without the question mark
	Header []upstream.Field
	Body   []byte
}

// get returns the first value of a header field.
func (in *Inbound) get(name string) string {
	for _, f := range in.Header {
		if strings.EqualFold(f.Name, name) {
			return f.Value
		}
	}
	return ""
}

// Outbound is the answer. Stream, if set, is read to its end or closed; then Body is empty.
type Outbound struct {
	Status int
	Header []upstream.Field
	Body   []byte
	Stream io.ReadCloser
	Length int64 // of Stream; -1 = not known
}

func (o *Outbound) set(name, value string) {
	o.Header = append(o.Header, upstream.Field{Name: name, Value: value})
}

// hopByHop are the fields that concern one connection only, and those that we set ourselves (RFC 9110, section 7.6.1).
var hopByHop = map[string]bool{
	"connection": true, "keep-alive": true, "proxy-connection": true, "proxy-authenticate": true,
	"proxy-authorization": true, "te": true, "trailer": true, "transfer-encoding": true, "upgrade": true,
	"expect": true, "host": true, "content-length": true, "date": true, "server": true,
}

// forRequest lists the client's fields that a worker gets. Answers are read on their way, so they must not be compressed.
func forRequest(in []upstream.Field) []upstream.Field {
	named := connectionTokens(in)
	out := make([]upstream.Field, 0, len(in)+1)
	for _, f := range in {
		name := strings.ToLower(f.Name)
		if hopByHop[name] || named[name] || name == "accept-encoding" || strings.HasPrefix(name, "x-warmpath-") {
			continue
		}
		out = append(out, f)
	}
	return append(out, upstream.Field{Name: "Accept-Encoding", Value: "identity"})
}

// connectionTokens are the fields that a Connection header declares hop-by-hop.
func connectionTokens(in []upstream.Field) map[string]bool {
	var named map[string]bool
	for _, f := range in {
		if !strings.EqualFold(f.Name, "connection") {
			continue
		}
		for token := range strings.SplitSeq(f.Value, ",") {
			if named == nil {
				named = map[string]bool{}
			}
			named[strings.ToLower(strings.TrimSpace(token))] = true
		}
	}
	return named
}

// forClient appends the worker's fields that a client gets.
func forClient(out []upstream.Field, h upstream.Header) []upstream.Field {
	for _, f := range h {
		if !hopByHop[strings.ToLower(f.Name)] {
			out = append(out, f)
		}
	}
	return out
}
