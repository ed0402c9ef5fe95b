package daemon

import (
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/conf"
	"github.com/warmpath/warmpath/conf/porttest"
)

// A daemon that never ran gives both of its ports back.
func TestADaemonThatNeverRanGivesItsPortsBack(t *testing.T) {
	file := filepath.Join(t.TempDir(), "warmpath.toml")
	toml := settings("roundrobin", echo(t, "a"))
	for range 2 {
		toml = strings.Replace(toml, "127.0.0.1:0", porttest.Address(t), 1)
	}
	write(t, file, toml)
	c, err := conf.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	d, err := New(c, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
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
