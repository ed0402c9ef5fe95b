package conf

import (
	"fmt"
	"slices"
	"strings"
)

// secretHeaders carry a client's credentials: no strategy needs them.
var secretHeaders = []string{"authorization", "proxy-authorization", "cookie", "x-api-key", "api-key"}

// isHeaderName reports whether s is a header's name in lower case.
func isHeaderName(s string) bool {
	return s != "" && len(s) <= 128 && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789-_") == ""
}

// checkAllowed reports an entry of a strategy's allow list that is no permission.
func checkAllowed(r *report, path, a string) {
	header, ok := strings.CutPrefix(a, "headers:")
	switch {
	case !ok:
		r.oneOf(path, a, "kv", "headers:x-tenant")
	case slices.Contains(secretHeaders, header):
		r.add(path, header+" is a secret of the client",
			"take it off the list: the caller's name is known to a strategy without it")
	case !isHeaderName(header):
		r.add(path, fmt.Sprintf("%q is no header's name in lower case", a),
			`write "headers:" and the name, as "headers:x-tenant"`)
	}
}
