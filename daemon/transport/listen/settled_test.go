package listen

import "testing"

// TestSettled is the table of what was written since an answer was handed to the server.
func TestSettled(t *testing.T) {
	const buffer = 4112
	f := func(body, wrote int, want bool) {
		t.Helper()
		c := &Conn{}
		if !c.Settled(buffer) {
			t.Error("a connection without an answer owes one")
		}
		c.Owe(body)
		c.wrote += wrote
		if c.Settled(buffer) != want {
			t.Errorf("a body of %d bytes, %d were written: want settled %v", body, wrote, want)
		}
	}
	f(0, 0, false)
	f(0, 150, true)
	f(100, 0, false)
	f(100, 250, true)
	f(4000, buffer, false) // the head and the first part of the body
	f(6000, buffer, false)
	f(6000, 6150, true)
}
