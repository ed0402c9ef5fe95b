package daemon

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestUnparsedRequestsHaveNoPath: fasthttp calls what it cannot parse GET /, which nobody asked for.
func TestUnparsedRequestsHaveNoPath(t *testing.T) {
	t.Parallel()
	log := filepath.Join(t.TempDir(), "access.log")
	toml := withServer(settings("roundrobin", fakeWorker(t, func(http.ResponseWriter, *http.Request) {}).URL),
		fmt.Sprintf("access_log = %q\nread_timeout = \"200ms\"", log))
	r := start(t, toml, 1)
	for _, request := range []string{"POST /v1/compl", "GET /health HTTP/1.1\nHost: x\n\n", "nonsense\r\n\r\n"} {
		raw(t, r.Addr(), request)
	}
	raw(t, r.Addr(), "DELETE /nowhere HTTP/1.1\r\nHost: x\r\n\r\n")
	var lines []map[string]any
	eventually(t, "four lines", func() bool { lines = logged(t, log); return len(lines) == 4 })
	for i, m := range lines {
		if i < 3 && (m["method"] != "" || m["path"] != "") || i == 3 && (m["method"] != "DELETE" || m["path"] != "/nowhere") {
			t.Errorf("line %d: %v %v", i, m["method"], m["path"])
		}
	}
}

// TestBareLineFeedsAreNamed: whoever writes requests by hand, with the wrong ends of lines, is told so.
func TestBareLineFeedsAreNamed(t *testing.T) {
	r := start(t, settings("roundrobin", fakeWorker(t, func(http.ResponseWriter, *http.Request) {}).URL), 1)
	c, err := net.Dial("tcp", r.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	if _, err := io.WriteString(c, "POST /v1/completions HTTP/1.1\nHost: x\nContent-Length: 0\n\n"); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(c)
	if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 400 ") || !strings.Contains(string(answer), "end its lines with CR LF") {
		t.Errorf("%v %s; want 400 and the remedy", err, answer)
	}
}
