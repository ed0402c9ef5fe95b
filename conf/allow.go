package conf

import (
	"fmt"
	"slices"
	"strings"
)

// secretHeaders carry what proves who the client is: no strategy needs them.
var secretHeaders = []string{"authorization", "proxy-authorization", "cookie", "x-api-key", "api-key"}

// checkAllowed reports an entry of a strategy's allow list that is no permission.
func checkAllowed(r *report, path, a string) {
	header, ok := strings.CutPrefix(a, "headers:")
	switch {
	case !ok:
		r.oneOf(path, a, "kv", "headers:x-tenant")
	case slices.Contains(secretHeaders, header):
		r.add(path, header+" is a secret of the client",
			"take it off the list: the caller's name is known to a strategy without it")
	case header == "" || len(header) > 128 || strings.Trim(header, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "":
		r.add(path, fmt.Sprintf("%q is no header's name in lower case", a),
			`write "headers:" and the name, as "headers:x-tenant"`)
	}
}
