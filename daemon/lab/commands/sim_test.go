package commands

import (
	"strings"
	"testing"

	"github.com/warmpath/warmpath/daemon/lab/vllmsim"
)

// TestSimHelpNamesTheFaults: README sends whoever wants to inject a fault to this help.
func TestSimHelpNamesTheFaults(t *testing.T) {
	help := simCommand().Long
	for _, mode := range vllmsim.FaultModes {
		if !strings.Contains(help, mode) {
			t.Errorf("warmpath sim --help does not name the fault %s", mode)
		}
	}
}
