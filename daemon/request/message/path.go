package message

import (
	"encoding/hex"
	"strings"
)

// twice begins the paths of clients whose base URL ends in /v1 although they add it themselves.
const twice = "/v1/v1/"

// FaultPath returns the answer to a path whose spelling is refused, with the reason.
func FaultPath(path string) Fault {
	f := FaultURL
	switch {
	case strings.Contains(path, "//"):
		f.Message = emptySegment
	case strings.Contains(path, `\`):
		f.Message = `the path has a backslash: write "/"`
	case strings.Contains(path, "/.") && !strings.Contains(path, "%"):
		f.Message = `the path has a segment "." or "..": write it without`
	}
	return f
}

const emptySegment = `the path has an empty segment ("//"): see that the base URL does not end in "/"`

// FaultNothing returns the answer to an unknown path, with the most likely mistake.
func FaultNothing(path string) Fault {
	f := FaultUnknownURL
	switch {
	case strings.HasPrefix(path, twice):
		f.Message = `there is nothing at this URL: "/v1" is there twice, so take it off the base URL`
	case strings.Contains(path, "//"):
		f.Message = "there is nothing at this URL: " + emptySegment + "; the API is under /v1"
	}
	return f
}

// plainPath returns the spelling of a path that the router checks and passes on. It decodes what is encoded without
// need, as every worker does before it looks for a route. It returns false if a worker, or a proxy before it, may read
// the path as a different one: with dot segments, empty segments, a backslash, an encoded slash or backslash, control
// characters, or a % that is not followed by two hexadecimal digits.
func plainPath(path string) (string, bool) {
	if strings.IndexByte(path, '%') >= 0 {
		decoded, ok := decodeUnreserved(path)
		if !ok {
			return path, false
		}
		path = decoded
	}
	for i := range len(path) {
		if path[i] <= ' ' || path[i] == 0x7f || path[i] == '\\' {
			return path, false
		}
	}
	for rest := path; ; {
		i := strings.IndexByte(rest, '/')
		if i < 0 {
			return path, rest != "." && rest != ".."
		}
		segment := rest[:i]
		rest = rest[i+1:]
		if segment == "." || segment == ".." || segment == "" && len(rest)+1 < len(path) {
			return path, false
		}
	}
}

// decodeUnreserved decodes the escapes of letters, digits and -._~ (RFC 3986, section 6.2.2.2). It returns false for
// escapes of characters that a path must not have.
func decodeUnreserved(path string) (string, bool) {
	var b strings.Builder
	for i := 0; i < len(path); i++ {
		if path[i] != '%' {
			b.WriteByte(path[i])
			continue
		}
		if i+2 >= len(path) {
			return path, false
		}
		raw, err := hex.DecodeString(path[i+1 : i+3])
		if err != nil {
			return path, false
		}
		switch c := raw[0]; {
		case c < ' ' || c == 0x7f || c == '/' || c == '\\':
			return path, false
		case isWord(c) || c == '.' || c == '~':
			b.WriteByte(c)
		default:
			b.WriteString(path[i : i+3])
		}
		i += 2
	}
	return b.String(), true
}

// isWord reports whether c is a letter, a digit, - or _.
func isWord(c byte) bool {
	return c == '-' || c == '_' || c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z'
}
