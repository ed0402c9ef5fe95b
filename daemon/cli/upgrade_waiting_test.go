package cli

import (
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestUpgradeServesWhoWaits: requests that wait for a worker with room when the binary is replaced are served by the old
// process.
func TestUpgradeServesWhoWaits(t *testing.T) {
	t.Parallel()
	s := newSite(t, "1")
	file := filepath.Join(s.dir, "a.toml")
	write(t, file, strings.Replace(read(t, file), "[[pools]]\n", "[[pools]]\nmax_in_flight = 1\n", 1))
	s.says("msg=reloaded", 1)
	const n = 8
	all := make(chan string, n)
	for range n {
		go func() {
			a, err := http.Post(s.client+"/v1/completions", "application/json",
				strings.NewReader(`{"model":"sim","prompt":"hi","max_tokens":60,"ignore_eos":true}`))
			if err != nil {
				all <- err.Error()
				return
			}
			defer a.Body.Close()
			text, err := io.ReadAll(a.Body)
			all <- fmt.Sprint(a.StatusCode, " ", err, " ", string(text))
		}()
	}
	depth := regexp.MustCompile(`warmpath_queue_depth\{class="normal",pool="pool1"\} (\d+)`)
	waiting := func() string {
		r, _ := http.NewRequest("GET", "http://"+s.admin+"/metrics", nil)
		r.Close = true // the next look is at the process that serves then
		a, err := http.DefaultClient.Do(r)
		if err != nil {
			return ""
		}
		defer a.Body.Close()
		text, _ := io.ReadAll(a.Body)
		if m := depth.FindSubmatch(text); m != nil {
			return string(m[1])
		}
		return ""
	}
	s.await("all but one wait", func() bool { return waiting() == fmt.Sprint(n-1) })
	if code, text := s.upgrade(""); code != 0 {
		t.Fatalf("exit %d:\n%s", code, text)
	}
	if got := waiting(); got != "0" {
		t.Errorf("%s requests wait in the new process", got)
	}
	for range n {
		if got := <-all; !strings.HasPrefix(got, "200 <nil>") {
			t.Errorf("a request that waited: %s", got)
		}
	}
}
