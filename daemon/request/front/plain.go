package front

import (
	"bytes"
	"strings"

	"github.com/warmpath/warmpath/daemon/transport/upstream"
)

// plainHead is the head of a request of the plainest form: a POST below /v1/ in HTTP/1.1, without a query, with one
// Host, and one Content-Length that is not zero.
type plainHead struct {
	path   string
	host   string
	length int64 // of the body
	size   int   // bytes of the head
	fields []upstream.Field
}

const (
	plainStart = "POST /v1/"
	plainEnd   = " HTTP/1.1"
	mostFields = 100
	mostDigits = 12 // of a length
)

// What a byte may stand in.
const (
	inToken = 1 << iota // a field's name
	inValue             // a field's value
	inPath
	inHost
)

// plainBytes holds for each byte the places in which it may stand.
var plainBytes = func() (of [256]uint8) {
	for c := ' '; c <= '~'; c++ {
		of[c] = inValue
		letter := c|0x20 >= 'a' && c|0x20 <= 'z'
		digit := c >= '0' && c <= '9'
		if letter || digit || strings.ContainsRune("!#$%&'*+-.^_`|~", c) {
			of[c] |= inToken
		}
		if letter || digit || strings.ContainsRune("/-_.", c) {
			of[c] |= inPath
		}
		if digit || c >= 'a' && c <= 'z' || c == '-' || c == '.' {
			of[c] |= inHost
		}
	}
	return of
}()

// all reports whether every byte of s may stand there.
func all(s string, there uint8) bool {
	for i := range len(s) {
		if plainBytes[s[i]]&there == 0 {
			return false
		}
	}
	return true
}

// read reads the head that b begins with, into memory of h. It returns false for every head that is not of the plainest
// form, is over most bytes, or has not come whole: fasthttp reads those. fasthttp reads in the same way every head that
// it takes (FuzzPlainHead).
func (h *plainHead) read(b []byte, most int) (plain bool) {
	if !bytes.HasPrefix(b, []byte(plainStart)) {
		return false
	}
	end := bytes.Index(b[:min(len(b), most)], []byte("\r\n\r\n"))
	if end < 0 {
		return false
	}
	h.size = end + 4
	h.host = ""
	h.length = 0
	h.fields = h.fields[:0]
	line, _, _ := bytes.Cut(b[:end], []byte("\r\n"))
	if !bytes.HasSuffix(line, []byte(plainEnd)) {
		return false
	}
	h.path = pathText(line[len("POST ") : len(line)-len(plainEnd)])
	return all(h.path, inPath) && h.readFields(string(b[min(len(line)+2, end+2):end+2]))
}

// readFields cuts block, lines that end in CR LF, into fields.
func (h *plainHead) readFields(block string) (plain bool) {
	for at := 0; at < len(block); {
		from := at
		for at < len(block) && plainBytes[block[at]]&inToken != 0 {
			at++
		}
		if at == from || at == len(block) || block[at] != ':' {
			return false
		}
		name := block[from:at]
		at++
		for at < len(block) && block[at] == ' ' {
			at++
		}
		from = at
		for at < len(block) && plainBytes[block[at]]&inValue != 0 {
			at++
		}
		if at+1 >= len(block) || block[at] != '\r' || block[at+1] != '\n' || len(h.fields) == mostFields {
			return false
		}
		value := strings.TrimRight(block[from:at], " ")
		at += 2
		if !h.takes(name, value) {
			return false
		}
		h.fields = append(h.fields, upstream.Field{Name: name, Value: value})
	}
	return h.host != "" && h.length > 0
}

// takes records a field that concerns the request's form, and reports whether that is plain.
func (h *plainHead) takes(name, value string) (plain bool) {
	switch len(name) {
	case 2:
		return !strings.EqualFold(name, "te")
	case 4:
		if !strings.EqualFold(name, "host") {
			return true
		}
		first := h.host == ""
		h.host = value
		return first && plainHost(value)
	case 6:
		return !strings.EqualFold(name, "expect")
	case 7:
		return !strings.EqualFold(name, "upgrade") && !strings.EqualFold(name, "trailer")
	case 10:
		return !strings.EqualFold(name, "connection") || value == "keep-alive" || value == "Keep-Alive"
	case 14:
		if !strings.EqualFold(name, "content-length") {
			return true
		}
		first := h.length == 0
		h.length = plainLength(value)
		return first && h.length > 0
	case 16:
		return !strings.EqualFold(name, "proxy-connection")
	case 17:
		return !strings.EqualFold(name, "transfer-encoding")
	}
	return true
}

// plainHost reports whether host is a name or an IPv4 address, in small letters, with or without a port.
func plainHost(host string) bool {
	name, port, found := strings.Cut(host, ":")
	return name != "" && all(name, inHost) && (!found || plainLength(port) > 0)
}

// plainLength returns a number in digits that begins with none of 0; 0 = it is something else.
func plainLength(digits string) (n int64) {
	if len(digits) == 0 || len(digits) > mostDigits || digits[0] == '0' {
		return 0
	}
	for i := range len(digits) {
		d := digits[i] - '0'
		if d > 9 {
			return 0
		}
		n = 10*n + int64(d)
	}
	return n
}
