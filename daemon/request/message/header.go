package message

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"

	"github.com/warmpath/warmpath/daemon/request/epoch"
	"github.com/warmpath/warmpath/daemon/request/pair"
	"github.com/warmpath/warmpath/daemon/transport/gate"
	"github.com/warmpath/warmpath/daemon/transport/upstream"
)

// perHop reports whether a field concerns one connection only (RFC 9110, section 7.6.1) or is one that we set
// ourselves. The lengths sort out most names without a comparison.
func perHop(name string) bool {
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

// replaced reports whether a worker gets this field of the client from us instead, or not at all.
func replaced(name string, in *Inbound, p *epoch.Pool) bool {
	if ourOwn(name) || pair.NamesWorker(name) {
		return true
	}
	switch len(name) {
	case 6:
		return strings.EqualFold(name, "cookie") && in.Epoch.Sessions.Cookie != ""
	case 9:
		return in.Caller.Name != "" && strings.EqualFold(name, "x-api-key")
	case 13:
		return (in.Caller.Name != "" || p.Key != "") && strings.EqualFold(name, "authorization")
	case 10, 11:
		return in.Trace.replaces(name)
	case 15:
		return strings.EqualFold(name, "accept-encoding") || strings.EqualFold(name, "x-forwarded-for")
	case 16:
		return strings.EqualFold(name, "x-forwarded-host")
	case 17:
		return strings.EqualFold(name, "x-forwarded-proto")
	}
	return false
}

// IDAtWorker returns the request's id as its worker gets it. Where clients have keys, and chose the id, a random part
// makes it unique: to engines equal ids are one request, so that two tenants could end each other's. Connectors of vLLM
// that read addresses of workers in an id (P2pNccl, MoRI-IO) find none of a client's.
func IDAtWorker(in *Inbound) string {
	if strings.Contains(in.ID, "_addr_") {
		return gate.RequestID("")
	}
	if in.Caller.Name == "" || in.Get("X-Request-Id") != in.ID {
		return in.ID
	}
	return fmt.Sprintf("%s-%08x", in.ID, rand.Uint32())
}

// WorkerHeader appends the fields that a worker of the pool gets, under the id that it gets; door may be nil. They ask
// for no compression, as the router reads answers on their way.
func WorkerHeader(out []upstream.Field, in *Inbound, id string, p *epoch.Pool, door Protocol) []upstream.Field {
	named := connectionTokens(in.Header)
	out = slices.Grow(out, len(in.Header)+10) // room for all that is added, a door's fields too
	for _, f := range in.Header {
		if perHop(f.Name) || replaced(f.Name, in, p) || door != nil && door.Strips(f.Name, f.Value) ||
			named != nil && named[strings.ToLower(f.Name)] {
			continue
		}
		out = append(out, f)
	}
	proto := "http"
	if in.TLS {
		proto = "https"
	}
	xff, xproto, xhost := gate.Forwarded(in.All, in.Remote, proto, in.Host)
	out = append(out, upstream.Field{Name: "Accept-Encoding", Value: "identity"},
		upstream.Field{Name: "X-Request-Id", Value: id}, upstream.Field{Name: "X-Forwarded-For", Value: xff},
		upstream.Field{Name: "X-Forwarded-Proto", Value: xproto}, upstream.Field{Name: "X-Forwarded-Host", Value: xhost})
	out = in.Trace.appendTo(out)
	if p.Key != "" {
		out = append(out, upstream.Field{Name: "Authorization", Value: "Bearer " + p.Key})
	}
	if own := in.Epoch.Sessions.Cookie; own != "" {
		if rest := otherCookies(in.Header, own); rest != "" {
			out = append(out, upstream.Field{Name: "Cookie", Value: rest})
		}
	}
	return out
}

// connectionTokens returns the fields that a Connection header declares hop-by-hop.
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

// ourOwn reports whether only this router may set the field.
func ourOwn(name string) bool {
	return len(name) == 12 && strings.EqualFold(name, "x-request-id") ||
		len(name) > 11 && strings.EqualFold(name[:11], "x-warmpath-")
}

// ClientHeader returns the worker's fields that a client gets, in the memory of h. The router answers CORS itself.
func ClientHeader(h upstream.Header) []upstream.Field {
	named := connectionTokens(h)
	out := h[:0]
	for _, f := range h {
		if f.Value == "" && strings.EqualFold(f.Name, "content-type") { // the same as none
			continue
		}
		if perHop(f.Name) || gate.IsCORS(f.Name) || ourOwn(f.Name) ||
			len(f.Name) == len(HeaderAnthropicRequest) && strings.EqualFold(f.Name, HeaderAnthropicRequest) ||
			named != nil && named[strings.ToLower(f.Name)] {
			continue
		}
		out = append(out, f)
	}
	return out
}

// StayHere cuts the worker's address and path off a Location, and its path off a cookie. vLLM redirects a path with an
// extra slash to its own address. A client would then bypass the router, or reach no server.
func StayHere(header []upstream.Field, worker string) {
	for i := range header {
		f := &header[i]
		switch {
		case strings.EqualFold(f.Name, "location"):
			f.Value = hereAt(f.Value, worker)
		case strings.EqualFold(f.Name, "set-cookie"):
			f.Value = cookieHere(f.Value, worker)
		}
	}
}

// hereAt returns the address of this router for one of a worker's, and others as they are.
func hereAt(location, worker string) string {
	to, err := url.Parse(location)
	at, fault := url.Parse(worker)
	if err != nil || fault != nil || to.Host != at.Host && (to.Host != "" || at.Path == "") {
		return location
	}
	path, ours := Below(to.EscapedPath(), at.Path)
	if !ours {
		return location
	}
	to.Scheme, to.Host, to.User = "", "", nil
	to.RawPath = path
	to.Path, _ = url.PathUnescape(path)
	return to.String()
}

// Below reports whether a path is root, which has no slash at its end, or below it, and returns the rest of the path.
func Below(path, root string) (rest string, is bool) {
	rest, begins := strings.CutPrefix(path, root)
	if !begins || rest != "" && rest[0] != '/' {
		return "", false
	}
	return cmp.Or(rest, "/"), true
}

// cookieHere cuts the worker's path off the path of a cookie.
func cookieHere(cookie, worker string) string {
	at, err := url.Parse(worker)
	if err != nil || at.Path == "" {
		return cookie
	}
	parts := strings.Split(cookie, ";")
	for i, p := range parts[1:] {
		name, path, _ := strings.Cut(strings.TrimSpace(p), "=")
		if rest, ours := Below(path, at.Path); ours && strings.EqualFold(name, "path") {
			parts[1+i] = " Path=" + rest
		}
	}
	return strings.Join(parts, ";")
}

// IsEvents reports whether a Content-Type is that of server-sent events. Media types have no case.
func IsEvents(kind string) bool {
	const events = "text/event-stream"
	return len(kind) >= len(events) && strings.EqualFold(kind[:len(events)], events)
}

// Coded reports whether the answer is compressed, although the router asks workers not to. It then goes to the client
// as it comes: the router cannot read events in it, and must not append one.
func Coded(h upstream.Header) bool {
	coding, ok := h.Lookup("Content-Encoding")
	return ok && coding != "" && !strings.EqualFold(coding, "identity")
}
