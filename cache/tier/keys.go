package tier

import (
	"strconv"
	"strings"
)

// keys is the prefix of every key in Redis.
type keys string

// key is unambiguous for every namespace: its length stands before it.
func (p keys) key(k id) string { return string(p) + strconv.Itoa(len(k.ns)) + ":" + k.ns + ":" + k.key }

// id is key the other way round.
func (p keys) id(full string) (id, bool) {
	rest, ok := strings.CutPrefix(full, string(p))
	if !ok {
		return id{}, false
	}
	digits, rest, ok := strings.Cut(rest, ":")
	n, err := strconv.Atoi(digits)
	if !ok || err != nil || n < 0 || len(rest) < n+1 || rest[n] != ':' {
		return id{}, false
	}
	return id{ns: rest[:n], key: rest[n+1:]}, true
}

// epoch is the key of the mark by which it is seen that Redis has forgotten.
func (p keys) epoch() string { return string(p) + epochKey }

// pattern fits the keys that begin with the prefix: what SCAN takes for a wildcard is escaped.
func (p keys) pattern() string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`, "]", `\]`).Replace(string(p)) + "*"
}
