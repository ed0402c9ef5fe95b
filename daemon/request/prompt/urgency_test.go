package prompt

import (
	"fmt"
	"testing"
)

// The first of the fields that is there counts, in its own direction, and a number that nobody means is none.
func TestUrgency(t *testing.T) {
	f := func(fields string, want int, ok bool) {
		t.Helper()
		var p Parser
		r, err := p.Parse(Chat, []byte(`{"model":"m","messages":[]`+fields+"}"))
		if err != nil {
			t.Fatal(err)
		}
		if got, is := r.Urgency(); got != want || is != ok {
			t.Errorf("%s: %d, %v; want %d, %v", fields, got, is, want, ok)
		}
	}
	f("", 0, false)
	f(`,"priority":3`, -3, true)
	f(`,"priority":-3`, 3, true)
	f(`,"priority":0`, 0, true)
	f(`,"priority":-0.0,"service_tier":"flex"`, 0, true)
	f(`,"priority":2.9`, -2, true)
	f(`,"service_tier":"flex"`, -1, true)
	f(`,"service_tier":"priority"`, 1, true)
	f(`,"service_tier":"auto"`, 0, false)
	f(`,"service_tier":"flex","priority":7`, -7, true)
	f(`,"nvext":{"agent_hints":{"priority":5}},"priority":7`, 5, true)
	f(`,"nvext":{"agent_hints":{"priority":"high"}},"priority":7`, -7, true)
	for _, bad := range []string{"1e308", "-1e308", "1e999", `"9"`, "true", "null", "[3]", "{}", "2147483648000"} {
		f(fmt.Sprintf(`,"priority":%s`, bad), 0, false)
	}
	for _, bad := range []string{"", "NaN", "Inf", "+3", "high", "0x10", "-", "3;4", "0 ", "00-"} {
		if got, ok := Priority([]byte(bad)); ok {
			t.Errorf("the header %q is %d", bad, got)
		}
	}
}
