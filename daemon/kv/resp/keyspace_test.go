package resp

import (
	"strings"
	"testing"
)

// TestKeyspace: a line for each database with keys, none for the others.
func TestKeyspace(t *testing.T) {
	s, _ := serve(t, Config{})
	c := dial(t, s)
	want := func(lines string) {
		t.Helper()
		if got := ask(t, c, cmd("INFO", "keyspace")); !strings.Contains(got, "# Keyspace\r\n"+lines+"\r\n") {
			t.Errorf("%q; want %q", got, lines)
		}
	}
	want("")
	ask(t, c, cmd("SET", "a", "1"))
	ask(t, c, cmd("SET", "b", "1"))
	want("db0:keys=2,expires=0,avg_ttl=0\r\n")
	ask(t, c, cmd("SELECT", "3"))
	ask(t, c, cmd("SET", "a", "1"))
	want("db0:keys=2,expires=0,avg_ttl=0\r\ndb3:keys=1,expires=0,avg_ttl=0\r\n")
}
