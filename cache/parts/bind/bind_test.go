package bind

import (
	"errors"
	"net"
	"testing"
)

type refusing struct{}

var errRefused = errors.New("refused")

func (refusing) Listen(string, string) (net.Listener, error) { return nil, errRefused }

// TestOr: a given binder is asked, and the system only where there is none.
func TestOr(t *testing.T) {
	if _, err := Or(refusing{}).Listen("tcp", "127.0.0.1:0"); !errors.Is(err, errRefused) {
		t.Errorf("a given binder: %v", err)
	}
	l, err := Or(nil).Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
}
