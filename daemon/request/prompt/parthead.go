package prompt

import (
	"strconv"
	"strings"
)

// partHead is the header of a form's part.
type partHead struct {
	name   string
	file   bool // it names a file
	coded  bool // it has a Content-Type of its own that a reader may decode the value by
	length int  // that it claims for its value, -1 = none
}

// Characters of boundaries (RFC 2046, section 5.1.1, without the blank), of names of fields, and of the unquoted
// value of filename* (RFC 8187).
const (
	letters       = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	boundaryChars = letters + "'()+_,-./:=?"
	nameChars     = letters + "_-.[]"
	extendedChars = letters + "!#$&+-.^_`|~%'"
)

// plainBoundary reports whether a Content-Type is written as clients write it: with the boundary alone.
func plainBoundary(contentType, boundary string) bool {
	rest, ok := strings.CutPrefix(contentType, "multipart/form-data;")
	if !ok || !onlyOf(boundary, boundaryChars) {
		return false
	}
	rest, ok = strings.CutPrefix(strings.TrimLeft(rest, " "), "boundary=")
	return ok && (rest == boundary || rest == `"`+boundary+`"`)
}

func onlyOf(s, chars string) bool {
	for i := range len(s) {
		if strings.IndexByte(chars, s[i]) < 0 {
			return false
		}
	}
	return s != ""
}

// readPartHead reads a part's header. It returns false for anything but the few lines that clients write, each at most
// once.
func readPartHead(head []byte) (h partHead, ok bool) {
	h.length = -1
	var seen [4]bool
	for line := range strings.SplitSeq(string(head), "\r\n") {
		if !visible(line) {
			return h, false
		}
		name, value, found := strings.Cut(line, ":")
		value = strings.Trim(value, " ")
		kind := 0
		switch strings.ToLower(name) {
		case "content-disposition":
			found = found && h.disposition(value)
		case "content-type":
			kind = 1
			found = found && !strings.HasPrefix(strings.ToLower(value), "multipart")
			h.coded = !plainText(value)
		case "content-transfer-encoding":
			kind = 2
			found = found && (value == "7bit" || value == "8bit" || value == "binary")
		case "content-length":
			n, err := strconv.Atoi(value)
			kind = 3
			found = found && err == nil && onlyOf(value, "0123456789")
			h.length = n
		default:
			return h, false
		}
		if !found || seen[kind] {
			return h, false
		}
		seen[kind] = true
	}
	return h, seen[0]
}

// visible reports whether a line has no control characters, among them the bare CR and LF that some readers end lines
// by.
func visible(line string) bool {
	for i := range len(line) {
		if line[i] < ' ' || line[i] == 0x7f {
			return false
		}
	}
	return true
}

// plainText reports whether a part's Content-Type leaves its value as it is.
func plainText(value string) bool {
	switch strings.ReplaceAll(strings.ToLower(value), " ", "") {
	case "", "text/plain", "text/plain;charset=utf-8", `text/plain;charset="utf-8"`, "text/plain;charset=us-ascii":
		return true
	}
	return false
}

// disposition reads form-data; name="model"; filename="a.wav". It returns false if there is more to it, or less.
func (h *partHead) disposition(value string) bool {
	rest, ok := strings.CutPrefix(value, "form-data")
	var seen [3]bool
	for ok && rest != "" {
		var key, v string
		key, v, rest, ok = nextParameter(rest)
		if !ok {
			return false
		}
		kind := 0
		switch key {
		case "name":
			h.name = v
			ok = onlyOf(v, nameChars)
		case "filename":
			kind = 1
			h.file = true
		case "filename*":
			kind = 2
			h.file = true
			ok = onlyOf(v, extendedChars)
		default:
			return false
		}
		ok = ok && !seen[kind]
		seen[kind] = true
	}
	return ok && seen[0]
}

// nextParameter splits ; key=value off.
func nextParameter(text string) (key, value, rest string, ok bool) {
	rest, ok = strings.CutPrefix(text, ";")
	if !ok {
		return "", "", "", false
	}
	key, rest, ok = strings.Cut(strings.TrimLeft(rest, " "), "=")
	if !ok {
		return "", "", "", false
	}
	value, rest, ok = parameter(rest)
	return key, value, rest, ok
}

// parameter splits a value off: quoted, or a bare word. Readers differ on a backslash before a quote.
func parameter(text string) (value, rest string, ok bool) {
	if quoted, is := strings.CutPrefix(text, `"`); is {
		value, rest, ok = strings.Cut(quoted, `"`)
		return value, rest, ok && !strings.HasSuffix(value, `\`)
	}
	end := len(text)
	if i := strings.IndexByte(text, ';'); i >= 0 {
		end = i
	}
	return text[:end], text[end:], onlyOf(text[:end], extendedChars)
}
