package daemon

import (
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/warmpath/warmpath/daemon/upstream"
)

// corsFields appends to fields what a browser must find in the answer to a request with that Origin; "" = it has none. A Vary
// that the answer has already is added to, so that there is one.
func (d *Daemon) corsFields(fields []upstream.Field, out *Outbound, origin string) []upstream.Field {
	for _, h := range d.state.Load().front.cors.Headers(origin) {
		if h[0] == "Vary" && out.varies(h[1]) {
			continue
		}
		fields = append(fields, upstream.Field{Name: h[0], Value: h[1]})
	}
	return fields
}

// varies adds a name to the answer's Vary field. It reports false if there is none.
func (o *Outbound) varies(name string) bool {
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

// allowPage gives an answer that did not come by way of a visit what a browser must find in it.
func (d *Daemon) allowPage(fc *fasthttp.RequestCtx) {
	for _, h := range d.state.Load().front.cors.Headers(anyCase(&fc.Request.Header, "Origin")) {
		fc.Response.Header.Set(h[0], h[1])
	}
}
