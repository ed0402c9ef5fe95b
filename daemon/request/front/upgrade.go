package front

import (
	"net/http"
	"slices"
	"strings"

	"github.com/warmpath/warmpath/daemon/request/message"
	"github.com/warmpath/warmpath/daemon/transport/upstream"
)

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

// keyProtocol begins the subprotocol by which a browser shows its key: it can set no header field (OpenAI's clients).
const keyProtocol = "openai-insecure-api-key."

// moveKey makes a key among the subprotocols an Authorization, if there is none. A worker gets it as it would get that.
func (q *request) moveKey() {
	fields, key := q.in.Header, ""
	for i := range fields {
		if !strings.EqualFold(fields[i].Name, "Sec-WebSocket-Protocol") {
			continue
		}
		var left []string
		for p := range strings.SplitSeq(fields[i].Value, ",") {
			p = strings.Trim(p, " \t")
			if shown, is := strings.CutPrefix(p, keyProtocol); is {
				key = shown
			} else {
				left = append(left, p)
			}
		}
		fields[i].Value = strings.Join(left, ", ")
	}
	if key == "" {
		return
	}
	fields = slices.DeleteFunc(fields, func(f upstream.Field) bool {
		return f.Value == "" && strings.EqualFold(f.Name, "Sec-WebSocket-Protocol")
	})
	if q.in.Get("Authorization") == "" {
		fields = append(fields, upstream.Field{Name: "Authorization", Value: "Bearer " + key})
	}
	q.in.SetHeader(fields)
}

// refusesSocket reports whether no worker takes WebSockets at an endpoint that plain HTTP serves too: the worker has
// ignored the handshake and answered the GET, or has no such path. Codex falls back to HTTP after 426 alone.
func (q *request) refusesSocket(out *message.Outbound) bool {
	return q.in.Socket && q.in.Endpoint.Shape == message.Responses && out.Stream == nil &&
		(out.Status < 300 || out.Status == http.StatusForbidden || out.Status == http.StatusNotFound ||
			out.Status == http.StatusMethodNotAllowed)
}
