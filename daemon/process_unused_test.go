package daemon

import (
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/daemon/lab/porttest"
)

// A daemon that never ran gives both of its ports back.
func TestADaemonThatNeverRanGivesItsPortsBack(t *testing.T) {
	toml := settings("roundrobin", echo(t, "a"))
	for range 2 {
		toml = strings.Replace(toml, "127.0.0.1:0", porttest.Address(t), 1)
	}
	d := build(t, filepath.Join(t.TempDir(), "warmpath.toml"), toml, slog.New(slog.DiscardHandler))
	d.Close()
	for _, addr := range []string{d.Addr(), d.AdminAddr()} {
		l, err := net.Listen("tcp", addr)
		if err != nil {
			t.Errorf("after Close: %v", err)
			continue
		}
		l.Close()
	}
}
