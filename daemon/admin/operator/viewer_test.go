package operator

import (
	"bufio"
	"bytes"
	"net"
	"testing"

	"github.com/warmpath/warmpath/daemon/admin/decisions"
)

// TestViewerOfAnIdleRouter: while nothing is decided, a viewer gets one event, with an empty list.
func TestViewerOfAnIdleRouter(t *testing.T) {
	var sent bytes.Buffer
	conn, _ := net.Pipe()
	f := follower{ring: new(decisions.Ring), w: bufio.NewWriter(&sent), conn: conn}
	for range 3 {
		if err := f.look(); err != nil {
			t.Fatal(err)
		}
	}
	const want = "event: decisions\ndata: {\"decisions\":[],\"left\":0}\n\n"
	if got := sent.String(); got != want {
		t.Errorf("sent %q; want %q", got, want)
	}
}
