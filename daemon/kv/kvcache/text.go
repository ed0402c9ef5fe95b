package kvcache

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The doors keep their clients apart: a key of the store begins with its door's letter and the client's space, "r" and
// a byte for the database that a Redis client selected, "h" with the length and the name of a HyperPod bucket. For
// people that is a path:
//
//	resp/0/org/model@1@0@ab12@bfloat16
//	hyperpod/lmcache/org%2Fmodel...    a / in the bucket stands as %2F, in the key as itself
const (
	respDoor = "resp/"
	podDoor  = "hyperpod/"
	rawDoor  = "raw/" // a key of no known door
)

// Text writes a key for people. Bytes that do not print, spaces and % stand as %XX.
func Text(key string) string {
	if key == "" {
		return ""
	}
	switch {
	case key == "r":
		return respDoor
	case key == "h":
		return podDoor
	case key[0] == 'r':
		return respDoor + strconv.Itoa(int(key[1])) + "/" + escape(key[2:])
	case key[0] == 'h' && len(key) >= 2+int(key[1]):
		end := 2 + int(key[1])
		return podDoor + strings.ReplaceAll(escape(key[2:end]), "/", "%2F") + "/" + escape(key[end:])
	}
	return rawDoor + escape(key)
}

// ParseText reads a key, or the beginning of one, as Text writes it.
func ParseText(text string) (key string, err error) {
	if text == "" {
		return "", nil
	}
	door, rest := "", ""
	for _, door = range [...]string{respDoor, podDoor, rawDoor} {
		if after, ok := strings.CutPrefix(text, door); ok {
			rest = after
			break
		}
		door = ""
	}
	space, rest, whole := rest, rest, true
	switch door {
	case "":
		return "", fmt.Errorf("%.80q is no key; begin with resp/DATABASE/ or hyperpod/BUCKET/", text)
	case respDoor, podDoor:
		if space == "" {
			return door[:1], nil
		}
		space, rest, whole = strings.Cut(rest, "/")
	}
	if !whole {
		return "", fmt.Errorf("%.80q ends within a name; write resp/DATABASE/ or hyperpod/BUCKET/ to its end", text)
	}
	key, err = url.PathUnescape(rest)
	if err != nil {
		return "", unescaped(text)
	}
	switch door {
	case respDoor:
		n, err := strconv.ParseUint(space, 10, 8)
		if err != nil {
			return "", fmt.Errorf("%.80q names no database; write resp/0/", text)
		}
		return "r" + string([]byte{byte(n)}) + key, nil
	case podDoor:
		bucket, err := url.PathUnescape(space)
		if err != nil || len(bucket) > 255 {
			return "", unescaped(text)
		}
		return "h" + string([]byte{byte(len(bucket))}) + bucket + key, nil
	}
	return key, nil
}

func unescaped(text string) error {
	return fmt.Errorf("%.80q has a %% that no two hexadecimal digits follow; a %% itself is written %%25", text)
}

// escape writes bytes that do not print, spaces and % as %XX.
func escape(s string) string {
	var b strings.Builder
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		if r == '%' || r == ' ' || r == utf8.RuneError && n == 1 || !unicode.IsPrint(r) {
			const digits = "0123456789ABCDEF"
			for i := range n {
				b.WriteByte('%')
				b.WriteByte(digits[s[i]>>4])
				b.WriteByte(digits[s[i]&15])
			}
		} else {
			b.WriteString(s[:n])
		}
		s = s[n:]
	}
	return b.String()
}
