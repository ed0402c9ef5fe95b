package main

import (
	"bytes"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/daemon/lab/wasmtest"
	"github.com/warmpath/warmpath/testdata/rig/wire"
)

func TestRequest(t *testing.T) {
	f := func(got []byte, want string) {
		t.Helper()
		if string(got) != want {
			t.Errorf("got %q\nwant %q", got, want)
		}
	}
	f(wire.Request("GET", "/x", ""), "GET /x HTTP/1.1\r\nHost: router\r\n\r\n")
	f(wire.Request("POST", "/x", ""), "POST /x HTTP/1.1\r\nHost: router\r\nContent-Length: 0\r\n\r\n")
	f(wire.Request("POST", "/x", "abc", "Host: evil"), "POST /x HTTP/1.1\r\nHost: evil\r\nContent-Length: 3\r\n\r\nabc")
}

// TestModulesAssemble has the text of each strategy read: a typing error would look like a refusal.
func TestModulesAssemble(t *testing.T) {
	for name, text := range map[string]string{
		"kv": kvFlood, "one": oneTarget(2, 3), "many": manyTargets(2, 3), "denormals": slowPicks["denormals-in-time"],
		"ref-func": slowPicks["ref-func"],
	} {
		if _, err := wasmtest.Assemble(text); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestFormsNameTheSecret: each attack's body but the honest one holds the name that the key may not use.
func TestFormsNameTheSecret(t *testing.T) {
	if body := form(part(`form-data; name="model"`)); !strings.Contains(body, "secret") || !strings.HasPrefix(body, "--B\r\n"+honestPart) {
		t.Errorf("%q", body)
	}
}

// TestFaultsAreRead: the table of faults is found, and each has its module.
func TestFaultsAreRead(t *testing.T) {
	readme, err := os.ReadFile("../../modules/README.md")
	if err != nil {
		t.Fatal(err)
	}
	all := faultsOf(string(readme))
	for _, f := range all {
		if _, err := os.Stat("../../modules/" + f.name + ".wat"); err != nil {
			t.Error(err)
		}
	}
	if len(all) < 18 || !slices.Contains(all, fault{"stack", "memory"}) {
		t.Errorf("%d faults: %v", len(all), all)
	}
	if s := sections(100_000_000); len(s) != 100_000_005 || !bytes.Equal(s[:7], []byte{0, 0x80, 0xc2, 0xd7, 0x2f, 1, 'x'}) {
		t.Errorf("%d bytes from % x", len(s), s[:7])
	}
}

// TestABrokenWayIsCounted: the exit status rests on it.
func TestABrokenWayIsCounted(t *testing.T) {
	r := &report{want: regexp.MustCompile("x/"), tried: map[string]bool{}}
	l := &lab{ctx: t.Context(), topic: "x", report: r}
	l.way("well", func() (bool, string) { return true, "" })
	l.way("ill", func() (bool, string) { return false, "" })
	l.way("well", func() (bool, string) { return true, "a second way of this name" })
	l.topic = "y"
	l.way("left-out", func() (bool, string) { return false, "" })
	if len(r.tried) != 2 || r.broken != 2 {
		t.Errorf("tried %v, broken %d; want two ways, two broken lines", r.tried, r.broken)
	}
}

// TestEchoKeepsWhatCame: whether a request came to a worker is judged by it.
func TestEchoKeepsWhatCame(t *testing.T) {
	l := &lab{ctx: t.Context()}
	e, err := l.echoes("sim")
	if err != nil {
		t.Fatal(err)
	}
	defer e.Stop()
	a := wire.Once(e.addr, wire.Request("POST", chatPath, chat("secret"), jsonType))
	got := e.asked()
	if a.Status != 200 || len(got) != 1 || !strings.Contains(got[0], "secret") || len(e.asked()) != 0 {
		t.Errorf("%s: kept %q", a.String(), got)
	}
}
