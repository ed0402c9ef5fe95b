package front

import "strings"

// asksWebSocket reports whether the request is the handshake of a WebSocket (RFC 6455, section 4.1): a GET of
// HTTP/1.1 with that protocol among those of its Upgrade fields. A request that offers another protocol, such as h2c,
// or that is not a handshake, is served as plain HTTP: a server may ignore Upgrade (RFC 9110, section 7.8).
// Connection: upgrade is not asked for, as some proxies drop it and pass Upgrade on.
func (q *request) asksWebSocket() bool {
	return q.in.Method == "GET" && q.fc.Request.Header.IsHTTP11() && offersWebSocket(q.in.All("Upgrade"))
}

// offersWebSocket reports whether the protocols of Upgrade fields, each a name with or without /version, have websocket
// among them.
func offersWebSocket(protocols string) bool {
	for p := range strings.SplitSeq(protocols, ",") {
		name, _, _ := strings.Cut(p, "/")
		if strings.EqualFold(strings.Trim(name, " \t"), "websocket") {
			return true
		}
	}
	return false
}
