package cli

import (
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/porttest"
)

// crowd is clients that send one request after another, over connections that they keep as long as the router does.
type crowd struct {
	url     string
	stop    chan struct{}
	running sync.WaitGroup
	answers atomic.Int64 // 200
	closing atomic.Int64 // of these, answers that ended their connection

	mu     sync.Mutex
	failed []string
}

// newCrowd starts n clients of the router at url.
func newCrowd(t *testing.T, url string, n int) *crowd {
	c := &crowd{url: url, stop: make(chan struct{})}
	for range n {
		c.running.Go(func() {
			transport := &http.Transport{}
			defer transport.CloseIdleConnections()
			for {
				select {
				case <-c.stop:
					return
				default:
					c.ask(&http.Client{Transport: transport, Timeout: 20 * time.Second})
				}
			}
		})
	}
	t.Cleanup(c.end)
	return c
}

// end waits until each client has its last answer.
func (c *crowd) end() {
	select {
	case <-c.stop:
	default:
		close(c.stop)
	}
	c.running.Wait()
}

func (c *crowd) ask(client *http.Client) {
	resp, err := client.Post(c.url+"/v1/completions", "application/json",
		strings.NewReader(`{"model":"sim","prompt":"x","max_tokens":4}`))
	if err == nil {
		defer resp.Body.Close()
		if _, err = io.Copy(io.Discard, resp.Body); err == nil && resp.StatusCode != http.StatusOK {
			err = fmt.Errorf("status %d", resp.StatusCode)
		}
	}
	if err != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.failed = append(c.failed, err.Error())
		return
	}
	c.answers.Add(1)
	if resp.Close {
		c.closing.Add(1)
	}
}

// TestDrainDelay: from SIGTERM on /ready is 503 on both ports and answers end their connections, but for drain_delay no
// client is refused. The worker that the file drains gets no request.
func TestDrainDelay(t *testing.T) {
	t.Parallel()
	port := porttest.Row(t, 4)
	at := func(i int) string { return fmt.Sprintf("127.0.0.1:%d", port+i) }
	dir := workplace(t)
	warmpath(t, dir, "sim --listen "+at(0)+" --speed 1000")
	warmpath(t, dir, "sim --listen "+at(3)+" --speed 1000")
	write(t, filepath.Join(dir, "a.toml"), fmt.Sprintf("[server]\nlisten = %q\nadmin = %q\ndrain_delay = \"6s\"\n"+
		"[[pools]]\n[[pools.workers]]\nurl = \"http://%s\"\n[[pools.workers]]\nid = \"out\"\nurl = \"http://%s\"\ndrain = true\n",
		at(1), at(2), at(0), at(3)))
	p := warmpath(t, dir, "serve --config a.toml")
	p.says(`msg="worker up"`, 2)
	c := newCrowd(t, "http://"+at(1), 8)
	p.eventually("the crowd is served", func() bool { return c.answers.Load() > 50 })
	_, _, page := fetch("GET", "http://"+at(2)+"/metrics", "")
	if !strings.Contains(page, `warmpath_worker_draining{pool="pool1",worker="out"} 1`) ||
		regexp.MustCompile(`warmpath_requests_total{.*worker="out"`).MatchString(page) {
		t.Errorf("the worker that the file drains:\n%s", page)
	}
	p.signal(syscall.SIGTERM)
	p.says("/ready is 503", 1)
	for _, i := range []int{1, 2} {
		if status, _, body := fetch("GET", "http://"+at(i)+"/ready", ""); status != 503 || !strings.Contains(body, `"draining":true`) {
			t.Errorf("/ready of port %d in the delay: %d %s; want 503", i, status, body)
		}
	}
	p.eventually("answers end their connections", func() bool { return c.closing.Load() > 100 })
	c.end()
	if strings.Contains(p.String(), "msg=draining") {
		t.Fatal("the drain began before the clients had ended: the test shows nothing; is the machine very slow?")
	}
	if len(c.failed) > 0 {
		t.Errorf("%d of %d requests failed within the delay: %.300v", len(c.failed), c.answers.Load(), c.failed)
	}
	if p.end(); p.err != nil || !strings.Contains(p.String(), "msg=drained") {
		t.Errorf("the end: %v\n%s", p.err, p)
	}
}
