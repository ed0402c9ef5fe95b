package message

import (
	"strings"

	"github.com/warmpath/warmpath/daemon/transport/upstream"
)

// CookieOf returns the value of the cookie with that name, or "". One that is ill-formed, as other applications of
// the client's domain may set, hides no other: [net/http.ParseCookie] would refuse them all.
func CookieOf(header []upstream.Field, name string) (value string) {
	eachCookie(header, func(cookie string) bool {
		n, v, ok := strings.Cut(cookie, "=")
		if ok && n == name {
			value = strings.Trim(v, `"`)
		}
		return !ok || n != name
	})
	return value
}

// otherCookies returns the client's cookies without the router's own, as one field.
func otherCookies(header []upstream.Field, own string) string {
	var rest []string
	eachCookie(header, func(cookie string) bool {
		if name, _, _ := strings.Cut(cookie, "="); name != own {
			rest = append(rest, cookie)
		}
		return true
	})
	return strings.Join(rest, "; ")
}

// eachCookie calls visit with each cookie as name=value, until it returns false.
func eachCookie(header []upstream.Field, visit func(cookie string) bool) {
	for _, f := range header {
		if len(f.Name) != len("cookie") || !strings.EqualFold(f.Name, "cookie") {
			continue
		}
		for part := range strings.SplitSeq(f.Value, ";") {
			cookie := strings.TrimSpace(part)
			if cookie != "" && !visit(cookie) {
				return
			}
		}
	}
}
