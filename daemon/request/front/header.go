package front

import (
	"bytes"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/warmpath/warmpath/daemon/transport/upstream"
)

// beforeBody is called by fasthttp between header and body of every request. It hides the body's length: fasthttp
// waits for the first byte of a body whose length it knows before it calls the handler, and a client may wait for an
// answer before it sends one. newRequest puts the length back. A client that waits for 100 is found in whatever letters
// it asks, as fasthttp knows one spelling.
func beforeBody(header *fasthttp.RequestHeader) fasthttp.RequestConfig {
	hideLength(header)
	for k, v := range header.All() {
		if len(k) == len("Expect") && strings.EqualFold(string(k), "Expect") &&
			strings.EqualFold(string(v), "100-continue") {
			header.Set("Expect", "100-continue")
			break
		}
	}
	return fasthttp.RequestConfig{}
}

// hideLength makes a body of known length one of unknown length.
func hideLength(header *fasthttp.RequestHeader) {
	if header.ContentLength() > 0 {
		header.SetContentLength(-1)
	}
}

// framing is what a header says of where the request ends, and the connection.
type framing struct {
	sound  bool // all parsers read the same request
	length int  // of the body: Content-Length, or 0
	close  bool // one of the options in the Connection fields
}

// readHeader cuts the header block, as it came, into fields of one string, appended to into. It is not sound if two
// HTTP parsers may read the request differently. fasthttp refuses some of these requests itself. That is a line that
// ends without a CR or goes on on the next one, a length beside a transfer encoding, or a transfer encoding with
// HTTP/1.0, which has none. It reads the length as fasthttp does (FuzzLength), and finds close where fasthttp finds
// it only alone, in small letters, in the last Connection field.
func readHeader(into []upstream.Field, raw []byte, http11 bool) (fields []upstream.Field, f framing) {
	block := string(raw)
	lengths, encoding := 0, false
	for len(block) > 0 {
		line, rest, whole := strings.Cut(block, "\r\n")
		if !whole || strings.Contains(line, "\n") {
			return into, f
		}
		block = rest
		if line == "" {
			break
		}
		name, value, ok := strings.Cut(line, ":")
		if !ok || line[0] == ' ' || line[0] == '\t' {
			return into, f
		}
		value = strings.Trim(value, " \t")
		switch len(name) {
		case len("Connection"):
			f.close = f.close || strings.EqualFold(name, "Connection") && upstream.NamesClose(value)
		case len("Content-Length"):
			if strings.EqualFold(name, "Content-Length") {
				lengths++
				n, err := fasthttp.ParseUint([]byte(value))
				if err != nil {
					return into, f
				}
				f.length = n
			}
		case len("Transfer-Encoding"):
			encoding = encoding || strings.EqualFold(name, "Transfer-Encoding")
		}
		into = append(into, upstream.Field{Name: name, Value: value})
	}
	f.sound = lengths <= 1 && !(encoding && (lengths > 0 || !http11))
	return into, f
}

// isPlainTarget reports whether the request line names a version that we speak, and the host of the Host field if it
// names one.
func isPlainTarget(fc *fasthttp.RequestCtx) bool {
	header := &fc.Request.Header
	if version := header.Protocol(); string(version) != "HTTP/1.1" && string(version) != "HTTP/1.0" {
		return false
	}
	target := header.RequestURI()
	if len(target) > 0 && target[0] == '/' {
		return true
	}
	_, rest, absolute := bytes.Cut(target, []byte("://"))
	authority, _, _ := bytes.Cut(rest, []byte("/"))
	return string(target) == "*" || absolute && bytes.EqualFold(authority, header.Host())
}
