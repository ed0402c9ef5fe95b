package daemon

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

// resident is the process's peak resident memory in bytes, since the last reset.
func resident(t *testing.T) int64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Skip("no /proc here")
	}
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	kb, err := strconv.ParseInt(strings.TrimSpace(rest[:strings.Index(rest, "kB")]), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return kb << 10
}

// inOwnProcess runs a test that measures its process's memory in a process of its own, beside other tests. It reports whether
// this is that process.
func inOwnProcess(t *testing.T) bool {
	t.Helper()
	if os.Getenv("WARMPATH_TEST_ALONE") != "" {
		return true
	}
	t.Parallel()
	c := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=2m")
	c.Env = append(os.Environ(), "WARMPATH_TEST_ALONE=1")
	out, err := c.CombinedOutput()
	t.Logf("%s", out)
	if err != nil || !bytes.Contains(out, []byte(": "+t.Name()+" (")) {
		t.Errorf("in its own process: %v", err)
	}
	return false
}

// zeros is a payload that is nowhere in memory.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return copy(p, block), nil }

var block = strings.Repeat("A", 64<<10)

// An opening payload of 500 MB passes through under the default limits: worker and client are in this process too,
// and hold none of it.
func TestALargeOpeningIsNotHeld(t *testing.T) {
	const size = 500 << 20
	var got int64
	w := fakeWorker(t, func(w http.ResponseWriter, r *http.Request) {
		got, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set(newID, "abc; Expires=2099-01-01T00:00:00Z")
	})
	r := start(t, settings("roundrobin", w.URL), 1)
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil { // resets the peak
		t.Skip("the peak of resident memory cannot be reset here: ", err)
	}
	before := resident(t)
	const head, tail = `{"model":"sim","payload":"`, `"}`
	body := io.MultiReader(strings.NewReader(head), io.LimitReader(zeros{}, size), strings.NewReader(tail))
	req, err := http.NewRequest("POST", "http://"+r.Addr()+invoke, body)
	if err != nil {
		t.Fatal(err)
	}
	req.ContentLength = int64(len(head)) + size + int64(len(tail))
	req.Header.Set(sessionID, "NEW_SESSION")
	patient := &http.Client{Timeout: 5 * time.Minute} // the race detector on a busy machine takes half a minute
	resp, err := patient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 200 || !strings.HasPrefix(resp.Header.Get(newID), "abc; Expires=") || got != req.ContentLength {
		t.Errorf("%d %v; the worker got %d bytes", resp.StatusCode, resp.Header, got)
	}
	grown := resident(t) - before
	if t.Logf("resident memory grew by %d MB", grown>>20); grown > 64<<20 {
		t.Errorf("resident memory grew by %d MB; want at most 64", grown>>20)
	}
}
