package resp

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/cache/kvstore"
)

// pool is one to which every address belongs, or none. It counts what it hears.
type pool struct {
	member bool
	heard  *int
}

func (p pool) Member(netip.Addr) bool { return p.member }

func (p pool) Hear([]byte) error { *p.heard++; return nil }

// TestPeer: a daemon of the pool reaches all keys. It has the password, or a member's address where none is set. A
// client that only uses the name is refused, and stays in its own namespace.
func TestPeer(t *testing.T) {
	const key = "h\x05teamAk1"
	f := func(name, password string, member bool, hello, want string) {
		t.Run(name, func(t *testing.T) {
			heard := 0
			s, store := serve(t, Config{Peer: "pool", Password: password, Pool: pool{member: member, heard: &heard}})
			c := dial(t, s)
			got := ask(t, c, hello)
			if !strings.Contains(got, want) {
				t.Errorf("%q answers %q; want %q", hello, got, want)
			}
			is := want == "+OK\r\n" || strings.HasPrefix(want, "$6\r\nserver")
			ask(t, c, cmd("SET", key, "evil")+cmd("PUBLISH", "channel", "forged"))
			if there := kvstore.NewView(store, kvstore.Here).Has(key); there != is || heard != map[bool]int{true: 1}[is] {
				t.Errorf("its SET reached the key of another door: %v; want %v; %d messages were heard", there, is, heard)
			}
			if got := ask(t, c, cmd("WARMPATH.FLUSH", "", "")); strings.HasPrefix(got, "*2") != is {
				t.Errorf("a flush answers %q", got)
			}
		})
	}
	setname := cmd("CLIENT", "SETNAME", "pool")
	f("a member", "", true, setname, "+OK\r\n")
	f("a stranger", "", false, setname, "-NOPERM")
	f("a member with HELLO", "", true, cmd("HELLO", "2", "SETNAME", "pool"), "$6\r\nserver")
	f("a stranger with HELLO", "", false, cmd("HELLO", "2", "SETNAME", "pool"), "-NOPERM")
	f("the password", "s", false, cmd("AUTH", "s")+setname, "+OK\r\n")
	f("no password", "s", true, setname+cmd("AUTH", "s"), "-NOAUTH")
	f("no password with HELLO", "s", true, cmd("HELLO", "2", "SETNAME", "pool")+cmd("AUTH", "s"), "-NOPERM")
	f("another name", "", true, cmd("CLIENT", "SETNAME", "worker"), "+OK")
}
