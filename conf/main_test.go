package conf

import (
	"os"
	"testing"
)

// TestMain names the built-ins, as package daemon does.
func TestMain(m *testing.M) {
	Builtins = []string{"prefixaware", "kvaware", "session", "roundrobin"}
	os.Exit(m.Run())
}
