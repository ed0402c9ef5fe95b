package front

import (
	"strings"

	"github.com/warmpath/warmpath/daemon/request/message"
	"github.com/warmpath/warmpath/daemon/transport/gate"
	"github.com/warmpath/warmpath/daemon/transport/upstream"
)

// corsFields appends to fields what a browser must find in the answer to a request with that Origin; "" = it has none.
// If the answer has a Vary already, it adds to that one.
func corsFields(cors gate.CORS, fields []upstream.Field, out *message.Outbound, origin string) []upstream.Field {
	for _, h := range cors.Headers(origin) {
		if h[0] == "Vary" && addVary(out, h[1]) {
			continue
		}
		fields = append(fields, upstream.Field{Name: h[0], Value: h[1]})
	}
	return fields
}

// addVary adds a name to the answer's Vary field. It returns false if the header lacks it.
func addVary(o *message.Outbound, name string) bool {
	for i := range o.Header {
		f := &o.Header[i]
		if len(f.Name) != len("vary") || !strings.EqualFold(f.Name, "vary") {
			continue
		}
		if f.Value != "*" && !strings.Contains(strings.ToLower(f.Value), strings.ToLower(name)) {
			f.Value += ", " + name
		}
		return true
	}
	return false
}

// preflight makes the answer to a preflight.
func preflight(status int, header [][2]string, text string) *message.Outbound {
	out := &message.Outbound{Status: status, Body: []byte(text)}
	for _, h := range header {
		out.Set(h[0], h[1])
	}
	return out
}
