package front

import (
	"bytes"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/warmpath/warmpath/daemon/transport/upstream"
)

// readHeader cuts the header block, as it came, into fields of one string, appended to into. It returns false if
// readers may differ on what the request is, beyond what fasthttp refuses. That is a line that ends without a CR or
// goes on on the next one, a length beside a transfer encoding, or a transfer encoding with HTTP/1.0, which has none.
func readHeader(into []upstream.Field, raw []byte, http11 bool) (fields []upstream.Field, sound bool) {
	block := string(raw)
	length, encoding := false, false
	for len(block) > 0 {
		line, rest, whole := strings.Cut(block, "\r\n")
		if !whole || strings.Contains(line, "\n") {
			return into, false
		}
		block = rest
		if line == "" {
			break
		}
		name, value, ok := strings.Cut(line, ":")
		if !ok || line[0] == ' ' || line[0] == '\t' {
			return into, false
		}
		switch len(name) {
		case len("Content-Length"):
			length = length || strings.EqualFold(name, "Content-Length")
		case len("Transfer-Encoding"):
			encoding = encoding || strings.EqualFold(name, "Transfer-Encoding")
		}
		into = append(into, upstream.Field{Name: name, Value: strings.Trim(value, " \t")})
	}
	return into, !(encoding && (length || !http11))
}

// plainTarget reports whether the request line names a version that we speak, and the host of the Host field if it
// names one.
func plainTarget(fc *fasthttp.RequestCtx) bool {
	h := &fc.Request.Header
	if version := h.Protocol(); string(version) != "HTTP/1.1" && string(version) != "HTTP/1.0" {
		return false
	}
	target := h.RequestURI()
	if len(target) > 0 && target[0] == '/' {
		return true
	}
	_, rest, absolute := bytes.Cut(target, []byte("://"))
	authority, _, _ := bytes.Cut(rest, []byte("/"))
	return string(target) == "*" || absolute && bytes.EqualFold(authority, h.Host())
}
