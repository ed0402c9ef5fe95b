package host

import "testing"

func TestNamesOfCodes(t *testing.T) {
	var n codeNames
	n.all = map[uint16]string{0: "first", 31: "last of the low", 32: "high", 65535: "highest"}
	n.fill()
	for code, want := range map[uint16]string{0: "first", 1: "", 31: "last of the low", 32: "high", 33: "", 65535: "highest"} {
		if got := n.of(code); got != want {
			t.Errorf("%d is %q; want %q", code, got, want)
		}
	}
}
