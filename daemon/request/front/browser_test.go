package front

import (
	"testing"

	"github.com/warmpath/warmpath/daemon/request/message"
	"github.com/warmpath/warmpath/daemon/transport/gate"
	"github.com/warmpath/warmpath/daemon/transport/upstream"
)

func TestAddVary(t *testing.T) {
	f := func(header []upstream.Field, had bool, want string) {
		t.Helper()
		out := &message.Outbound{Header: header}
		if got := addVary(out, "Origin"); got != had || out.Get("Vary") != want {
			t.Errorf("%v: %v, Vary %q; want %v, %q", header, got, out.Get("Vary"), had, want)
		}
	}
	f(nil, false, "")
	f([]upstream.Field{{Name: "Date", Value: "x"}}, false, "")
	f([]upstream.Field{{Name: "Vary", Value: "Accept"}}, true, "Accept, Origin")
	f([]upstream.Field{{Name: "vary", Value: "Accept, origin"}}, true, "Accept, origin")
	f([]upstream.Field{{Name: "VARY", Value: "*"}}, true, "*")
}

func TestCORSFields(t *testing.T) {
	f := func(origins []string, origin, allowed string, vary int) {
		t.Helper()
		out := &message.Outbound{Header: []upstream.Field{{Name: "Vary", Value: "Accept"}}}
		fields := corsFields(gate.NewCORS(origins), nil, out, origin)
		if got := upstream.Header(fields).Get("Access-Control-Allow-Origin"); got != allowed {
			t.Errorf("%q may be read by %q: %q; want %q", origin, origins, got, allowed)
		}
		n := 0
		for _, field := range append(fields, out.Header...) {
			if field.Name == "Vary" {
				n++
			}
		}
		if n != vary {
			t.Errorf("%q, %q: %d Vary fields; want %d", origins, origin, n, vary)
		}
	}
	f(nil, "http://a", "", 1)
	f([]string{"http://a"}, "http://a", "http://a", 1)
	f([]string{"http://a"}, "http://b", "", 1)
	f([]string{"http://a"}, "", "", 1)
	f([]string{"*"}, "http://a", "*", 1)
}
