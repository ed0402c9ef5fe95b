package sagemaker

import (
	"strings"
	"time"
)

// maxSession bounds the id of a session.
const maxSession = 256

// ValidID reports whether s can be the id of a session: [a-zA-Z0-9](-*[a-zA-Z0-9])*, at most 256. NEW_SESSION is
// none.
func ValidID(s string) bool { return validName(s, maxSession) }

// validName reports a match of the pattern [a-zA-Z0-9](-*[a-zA-Z0-9])*.
func validName(s string, most int) bool {
	if s == "" || len(s) > most || s[0] == '-' || s[len(s)-1] == '-' {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if c != '-' && (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z') {
			return false
		}
	}
	return true
}

// FormatNew returns the value of HeaderNewSession. SDKs pass the whole value to the application, which splits it: one
// blank, UTC, no fraction.
func FormatNew(id string, expires time.Time) string {
	return id + "; Expires=" + expires.UTC().Format("2006-01-02T15:04:05Z")
}

// newLayouts are the forms in which workers write the end of a session.
var newLayouts = [...]string{
	time.RFC3339, "2006-01-02T15:04:05", "2006-01-02 15:04:05Z07:00", "2006-01-02 15:04:05",
}

// ParseNew reads such a value as workers write it: blanks anywhere, the attribute's name in any case, quoted or not,
// with an offset or a fraction or without a zone (then UTC). Without an end, or with one that cannot be read, expires
// is zero.
func ParseNew(value string) (id string, expires time.Time, ok bool) {
	id, rest, _ := strings.Cut(value, ";")
	id = strings.TrimSpace(id)
	if !ValidID(id) {
		return "", time.Time{}, false
	}
	for attribute := range strings.SplitSeq(rest, ";") {
		name, at, _ := strings.Cut(attribute, "=")
		if !strings.EqualFold(strings.TrimSpace(name), "expires") {
			continue
		}
		at = strings.Trim(strings.TrimSpace(at), `"`)
		for _, layout := range newLayouts {
			if t, err := time.Parse(layout, at); err == nil {
				return id, t.UTC(), true
			}
		}
	}
	return id, time.Time{}, true
}

// Opened reads from the head of a worker's answer to Open the session that the worker made. Workers send it under
// either of two names. ok is false if it made none, and err reports one with an id that cannot be used.
func Opened(get func(name string) string) (id string, expires time.Time, ok bool, err *Error) {
	for _, name := range [...]string{HeaderNewSession, HeaderSession} {
		value := get(name)
		if value == "" {
			continue
		}
		id, expires, ok = ParseNew(value)
		if ok {
			return id, expires, true, nil
		}
		return "", time.Time{}, false, ModelError(0, "the model opened a session with an id that is not allowed")
	}
	return "", time.Time{}, false, nil
}
