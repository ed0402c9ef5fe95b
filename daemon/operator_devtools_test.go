package daemon

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// tab is a tab of a real browser, driven over its DevTools pipe: JSON messages that end with a zero byte.
// https://chromedevtools.github.io/devtools-protocol
type tab struct {
	t       *testing.T
	in      io.Writer
	session string

	mu      sync.Mutex // guards all below
	last    int
	waiting map[int]chan json.RawMessage
	urls    []string // asked for
	faults  []string // console errors, exceptions, what the browser logs as one
}

// openTab starts a browser with an empty tab, or skips the test.
func openTab(t *testing.T) *tab {
	t.Helper()
	if _, err := exec.LookPath("chromium"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("there is no chromium: apt-get install chromium")
		}
		t.Skip("SKIPPED: there is no chromium, so no real browser opens the page; apt-get install chromium")
	}
	home := t.TempDir()
	theirs, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	out, theirOut, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	browser := exec.Command("chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--user-data-dir="+home,
		"--remote-debugging-pipe", "about:blank")
	browser.Env = append(os.Environ(), "HOME="+home)
	browser.ExtraFiles = []*os.File{theirs, theirOut}
	browser.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := browser.Start(); err != nil {
		t.Fatal(err)
	}
	theirs.Close()
	theirOut.Close()
	b := &tab{t: t, in: in, waiting: map[int]chan json.RawMessage{}}
	t.Cleanup(func() {
		_ = syscall.Kill(-browser.Process.Pid, syscall.SIGKILL)
		_ = browser.Wait()
		in.Close()
		out.Close()
	})
	go b.read(out)
	var target struct{ TargetID string }
	b.call("Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	var attached struct{ SessionID string }
	b.call("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached)
	b.session = attached.SessionID
	for _, domain := range []string{"Page", "Runtime", "Network", "Log", "Performance"} {
		b.call(domain+".enable", nil, nil)
	}
	return b
}

// read takes answers and events until the browser ends.
func (b *tab) read(out io.Reader) {
	r := bufio.NewReaderSize(out, 1<<20)
	for {
		text, err := r.ReadBytes(0)
		if err != nil {
			return
		}
		var m struct {
			ID     int
			Method string
			Result json.RawMessage
			Error  json.RawMessage
			Params struct {
				Request          struct{ URL string }
				Type             string
				Args             []struct{ Value any }
				ExceptionDetails json.RawMessage
				Entry            struct{ Level, Text, URL string }
			}
		}
		_ = json.Unmarshal(bytes.TrimRight(text, "\x00"), &m)
		b.mu.Lock()
		p := &m.Params
		switch {
		case m.ID > 0 && b.waiting[m.ID] != nil:
			if m.Error != nil {
				m.Result = append([]byte("!"), m.Error...)
			}
			b.waiting[m.ID] <- m.Result
			delete(b.waiting, m.ID)
		case m.Method == "Network.requestWillBeSent":
			b.urls = append(b.urls, p.Request.URL)
		case m.Method == "Runtime.exceptionThrown":
			b.faults = append(b.faults, string(p.ExceptionDetails))
		case m.Method == "Runtime.consoleAPICalled" && (p.Type == "error" || p.Type == "warning"):
			b.faults = append(b.faults, fmt.Sprint(p.Args))
		case m.Method == "Log.entryAdded" && (p.Entry.Level == "error" || p.Entry.Level == "warning"):
			b.faults = append(b.faults, p.Entry.Text+" "+p.Entry.URL)
		}
		b.mu.Unlock()
	}
}

// call calls a method and reads its result into v.
func (b *tab) call(method string, params map[string]any, v any) {
	b.t.Helper()
	b.mu.Lock()
	b.last++
	id, answer := b.last, make(chan json.RawMessage, 1)
	b.waiting[id] = answer
	m := map[string]any{"id": id, "method": method}
	if params != nil {
		m["params"] = params
	}
	if b.session != "" {
		m["sessionId"] = b.session
	}
	text, _ := json.Marshal(m)
	_, err := b.in.Write(append(text, 0))
	b.mu.Unlock()
	if err != nil {
		b.t.Fatal(err)
	}
	select {
	case result := <-answer:
		if bytes.HasPrefix(result, []byte("!")) {
			b.t.Fatalf("%s: %s", method, result)
		}
		if v != nil {
			if err := json.Unmarshal(result, v); err != nil {
				b.t.Fatalf("%s: %s: %v", method, result, err)
			}
		}
	case <-time.After(time.Minute):
		b.t.Fatalf("%s: no answer within a minute", method)
	}
}

// eval runs an expression in the page and returns its value in JSON.
func (b *tab) eval(script string) string {
	b.t.Helper()
	var r struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails json.RawMessage
	}
	b.call("Runtime.evaluate", map[string]any{"expression": script, "awaitPromise": true, "returnByValue": true}, &r)
	if r.ExceptionDetails != nil {
		b.t.Fatalf("%s: %s", script, r.ExceptionDetails)
	}
	return string(r.Result.Value)
}

// await waits until an expression is true in the page, and returns how long that took.
func (b *tab) await(what, script string) time.Duration {
	b.t.Helper()
	began := time.Now()
	for time.Since(began) < 30*time.Second {
		if b.eval("(() => { try { return Boolean("+script+") } catch { return false } })()") == "true" {
			return time.Since(began)
		}
		time.Sleep(20 * time.Millisecond)
	}
	b.t.Fatalf("%s: not within 30 s; the page says %s", what, b.eval("document.body.innerText.slice(0, 2000)"))
	return 0
}

// unfold opens the card of a worker, by its row.
func (b *tab) unfold(pool, id string) {
	b.t.Helper()
	row := fmt.Sprintf(`document.querySelector("#fleet tr[data-key='%s %s']")`, pool, id)
	b.await("the row of "+id, row)
	b.eval(`if (` + row + `.getAttribute("aria-expanded") !== "true") ` + row + `.click()`)
	b.await("the card of "+id, row+`.nextSibling.matches("tr.more")`)
}

// spent returns how many seconds the page has run script for since it was opened.
func (b *tab) spent() float64 {
	b.t.Helper()
	var got struct {
		Metrics []struct {
			Name  string
			Value float64
		}
	}
	b.call("Performance.getMetrics", nil, &got)
	for _, m := range got.Metrics {
		if m.Name == "ScriptDuration" {
			return m.Value
		}
	}
	b.t.Fatalf("no ScriptDuration in %v", got)
	return 0
}

// screen makes the screen of the tab so large.
func (b *tab) screen(width, height int) {
	b.t.Helper()
	b.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": 1,
		"mobile": width < 500}, nil)
}

// look writes a picture of the page to a file, as wide as said, in light or dark.
func (b *tab) look(file string, width, height int, scheme string) {
	b.t.Helper()
	b.screen(width, height)
	b.call("Emulation.setEmulatedMedia", map[string]any{"features": []any{
		map[string]string{"name": "prefers-color-scheme", "value": scheme}}}, nil)
	time.Sleep(300 * time.Millisecond)
	var shot struct{ Data string }
	params := map[string]any{"format": strings.TrimPrefix(filepath.Ext(file), ".")}
	if params["format"] == "webp" {
		params["quality"] = 80
	}
	b.call("Page.captureScreenshot", params, &shot)
	picture, err := base64.StdEncoding.DecodeString(shot.Data)
	if err == nil {
		err = os.WriteFile(file, picture, 0o644)
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

// asked returns the addresses that the page asked for until now.
func (b *tab) asked() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.urls)
}

// blameless checks that nothing failed in the page, and that it asked nobody else.
func (b *tab) blameless(origin string) {
	b.t.Helper()
	urls := b.asked()
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.faults) > 0 {
		b.t.Errorf("the page has %d faults: %s", len(b.faults), strings.Join(b.faults, "\n"))
	}
	for _, u := range urls {
		if !strings.HasPrefix(u, origin+"/") && u != "about:blank" {
			b.t.Errorf("the page asked for %s", u)
		}
	}
	if len(urls) < 5 {
		b.t.Errorf("the page asked for %q only", urls)
	}
}
