package message

import (
	"strings"
	"testing"

	"github.com/warmpath/warmpath/daemon/transport/upstream"
)

// TestSetHeaderHidesNothing: with and without the lengths that SetHeader keeps a request gives the same for every name.
func TestSetHeaderHidesNothing(t *testing.T) {
	long, longer := strings.Repeat("l", 63), strings.Repeat("l", 200)
	fields := []upstream.Field{{Name: "Host", Value: "a"}, {Name: "x-A", Value: "1"}, {Name: "X-a", Value: "2"},
		{Name: longer, Value: "long"}}
	var plain, set Inbound
	plain.Header = fields
	set.SetHeader(fields)
	for _, name := range []string{"host", "Host", "x-a", "X-B", "none", "", long, long + "l", longer, strings.ToUpper(longer)} {
		v, ok := plain.Lookup(name)
		w, found := set.Lookup(name)
		if v != w || ok != found || plain.Get(name) != set.Get(name) || plain.All(name) != set.All(name) {
			t.Errorf("%.10q: %q, %v; want %q, %v", name, w, found, v, ok)
		}
	}
	if set.Get(longer) != "long" || set.All("X-A") != "1, 2" || set.mayHave("no-such-field") {
		t.Error("what is there is not found, or what is not there is looked for")
	}
	set.SetHeader(nil)
	if set.Get("Host") != "" {
		t.Error("an empty header has a host")
	}
}
