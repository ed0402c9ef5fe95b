package prompt

import (
	"bytes"
	"unicode/utf16"
	"unicode/utf8"
)

// hexValue maps a hex digit to its value, everything else to 255.
var hexValue = func() (t [256]uint8) {
	for i := range t {
		t[i] = 255
	}
	for i, c := range "0123456789abcdef" {
		t[c] = uint8(i)
		t[bytes.ToUpper([]byte{byte(c)})[0]] = uint8(i)
	}
	return t
}()

// escapeValue maps the letter after a backslash to its byte, or to 0 for an unknown escape and for u.
var escapeValue = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// escapeLen returns the length of the escape that b begins with: 2, or 6 for \uXXXX. It returns 0 if b does not begin
// with one.
func escapeLen(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	if escapeValue[b[1]] != 0 {
		return 2
	}
	if b[1] == 'u' && len(b) >= 6 && hexValue[b[2]]|hexValue[b[3]]|hexValue[b[4]]|hexValue[b[5]] < 16 {
		return 6
	}
	return 0
}

func hex4(b []byte) rune {
	return rune(hexValue[b[0]])<<12 | rune(hexValue[b[1]])<<8 | rune(hexValue[b[2]])<<4 | rune(hexValue[b[3]])
}

func escaped(raw []byte) bool { return bytes.IndexByte(raw, '\\') >= 0 }

// unescape appends the text of a JSON string's inside, which was scanned before. Half a surrogate pair becomes
// U+FFFD, as in encoding/json.
func unescape(dst, raw []byte) []byte {
	for {
		j := bytes.IndexByte(raw, '\\')
		if j < 0 {
			return append(dst, raw...)
		}
		dst = append(dst, raw[:j]...)
		raw = raw[j:]
		for len(raw) > 0 && raw[0] == '\\' {
			var n int
			dst, n = unescapeOne(dst, raw)
			raw = raw[n:]
		}
	}
}

// unescapeOne appends the character of one escape (or one surrogate pair), and returns the length of the escape.
func unescapeOne(dst, raw []byte) ([]byte, int) {
	if raw[1] != 'u' {
		return append(dst, escapeValue[raw[1]]), 2
	}
	r, n := hex4(raw[2:]), 6
	if utf16.IsSurrogate(r) {
		pair := rune(utf8.RuneError)
		if len(raw) >= 12 && raw[6] == '\\' && raw[7] == 'u' {
			pair = utf16.DecodeRune(r, hex4(raw[8:]))
		}
		r = pair
		if r != utf8.RuneError {
			n = 12
		}
	}
	return utf8.AppendRune(dst, r), n
}

// Inside returns a raw string without its quotes, nil for any other value.
func Inside(raw []byte) []byte {
	if len(raw) < 2 || raw[0] != '"' {
		return nil
	}
	return raw[1 : len(raw)-1]
}
