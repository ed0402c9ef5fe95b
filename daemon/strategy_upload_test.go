package daemon

import (
	"bufio"
	"crypto/sha256"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/vllmsim"
	"github.com/warmpath/warmpath/daemon/lab/wasmtest"
)

const adminToken = "a-token-of-a-test"

// withModules is a configuration with a token and a folder of modules, and the folder.
func withModules(t *testing.T, strategy string, n int) (text, dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "modules")
	token := filepath.Join(t.TempDir(), "admin.token")
	write(t, token, adminToken)
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	text = settings(strategy, sims(t, n, vllmsim.Config{Speed: 100}).URLs()...)
	return strings.Replace(text, "[server]\n", fmt.Sprintf("[server]\nadmin_token_file = %q\nstrategies_dir = %q\n", token, dir), 1), dir
}

// countingModule is a version of a strategy that counts its picks in the store.
func countingModule(t *testing.T, more string) string {
	t.Helper()
	wasm, err := wasmtest.Assemble(fmt.Sprintf(counting, more))
	if err != nil {
		t.Fatal(err)
	}
	return string(wasm)
}

func (r *running) admin(method, path, body string, header ...string) seen {
	r.t.Helper()
	return do(r.t, method, "http://"+r.AdminAddr()+path, body, append([]string{"Authorization", "Bearer " + adminToken}, header...)...)
}

// TestAnUploadServesAndKeepsItsStore: a version comes by the admin API, serves when the answer is there, counts on from
// where the one before was, and no request of others fails meanwhile.
func TestAnUploadServesAndKeepsItsStore(t *testing.T) {
	text, dir := withModules(t, "prefixaware", 2)
	r := start(t, text+"[strategies.mine]\nallow = ['kv']\n", 2)
	reason := func() (n int) {
		t.Helper()
		var s seen
		for range 100 { // on a busy machine a pick may wait in vain for an instance
			s = r.do("POST", "/v1/completions", `{"model":"sim","prompt":"x","max_tokens":1}`, "X-Warmpath-Explain", "1")
			if s.header.Get("X-Warmpath-Reason") != "fallback: busy" {
				break
			}
		}
		if _, err := fmt.Sscanf(s.header.Get("X-Warmpath-Reason"), "reason %d", &n); err != nil || s.status != 200 {
			t.Fatalf("%d %q %v", s.status, s.header.Get("X-Warmpath-Reason"), err)
		}
		return n
	}
	first := countingModule(t, "")
	if s := r.admin("PUT", "/api/v1/strategies/mine", first); s.status != 200 || !strings.Contains(s.body, "no pool names it") {
		t.Fatalf("%d %s; want that it serves nobody yet", s.status, s.body)
	}
	if s := r.admin("PUT", "/api/v1/pools/main/strategy", `{"strategy":"mine"}`); s.status != 200 || !strings.Contains(s.body, `"in_place_of":"prefixaware"`) {
		t.Fatalf("%d %s", s.status, s.body)
	}
	end := r.underLoad(2)
	was := reason()
	for i := range 5 {
		next := countingModule(t, fmt.Sprint(" ", i))
		s := r.admin("PUT", "/api/v1/strategies/mine", next, "If-Match", fmt.Sprintf(`"%x"`, sha256.Sum256([]byte(first))))
		sum := fmt.Sprintf("%x", sha256.Sum256([]byte(next)))
		if s.status != 200 || !strings.Contains(s.body, sum) || s.header.Get("Etag") != `"`+sum+`"` || r.describe()[0].Module != sum {
			t.Fatalf("%d %s; want %s in force", s.status, s.body, sum)
		}
		if now := reason(); now <= was {
			t.Errorf("it counts %d after %d: the store is gone", now, was)
		} else {
			was = now
		}
		first = next
	}
	if sent, failed := end(); failed != 0 || sent == 0 {
		t.Errorf("%d of %d requests failed", failed, sent)
	}
	if got, err := os.ReadFile(filepath.Join(dir, "mine.wasm")); string(got) != first {
		t.Errorf("the folder has another module (%v)", err)
	}
	if s := r.admin("DELETE", "/api/v1/strategies/mine", ""); s.status != 409 {
		t.Errorf("%d %s; want 409: it serves", s.status, s.body)
	}
	if s := r.admin("DELETE", "/api/v1/pools/main/strategy", ""); s.status != 200 || r.describe()[0].Strategy != "prefixaware" {
		t.Errorf("%d %s; want prefixaware again", s.status, s.body)
	}
	if s := r.admin("DELETE", "/api/v1/strategies/mine", ""); s.status != 200 {
		t.Errorf("%d %s", s.status, s.body)
	}
}

// TestUploadsThatAreRefused: nothing changes, and the answer says what to do.
func TestUploadsThatAreRefused(t *testing.T) {
	text, dir := withModules(t, "mine", 1)
	good := countingModule(t, "")
	write(t, filepath.Join(dir, "mine.wasm"), good)
	r := start(t, text+"[strategies.mine]\nallow = ['kv']\n", 1)
	const path = "/api/v1/strategies/mine"
	f := func(s seen, status int, says string) {
		t.Helper()
		if s.err != nil || s.status != status || !strings.Contains(s.body, says) {
			t.Errorf("%d %s (%v); want %d with %q", s.status, s.body, s.err, status, says)
		}
		if got, err := os.ReadFile(filepath.Join(dir, "mine.wasm")); string(got) != good {
			t.Errorf("the module in the folder has changed (%v)", err)
		}
		if s := r.do("POST", "/v1/completions", `{"model":"sim","prompt":"x","max_tokens":1}`, "X-Warmpath-Explain", "1"); s.status != 200 || s.header.Get("X-Warmpath-Strategy") != "mine" {
			t.Errorf("%d, %q decides", s.status, s.header.Get("X-Warmpath-Strategy"))
		}
	}
	other := countingModule(t, " other")
	at := "http://" + r.AdminAddr()
	f(do(t, "PUT", at+path, other), 401, "")
	f(do(t, "PUT", at+path, other, "Authorization", "Bearer "+adminToken+"x"), 401, "")
	f(do(t, "PUT", at+"/api/v1/pools/main/strategy", `{"strategy":"kvaware"}`), 401, "")
	f(r.admin("PUT", path, other, "If-Match", `"`+strings.Repeat("0", 64)+`"`), 409, fmt.Sprintf("%x", sha256.Sum256([]byte(good))))
	f(r.admin("PUT", path, "no module"), 422, "c-shared")
	f(r.admin("PUT", path, other[:len(other)/2]), 422, "")
	f(r.admin("PUT", path, ""), 422, "no body")
	trap, err := wasmtest.Assemble(strings.Replace(fmt.Sprintf(counting, ""), "call $incr", "call $incr unreachable", 1))
	if err != nil {
		t.Fatal(err)
	}
	f(r.admin("PUT", path, string(trap)), 422, "unreachable")
	f(r.admin("PUT", path, other, "Origin", "http://elsewhere.example"), 403, "")
	f(r.admin("PUT", "/api/v1/strategies/prefixaware", other), 400, "built-in")
	f(r.admin("PUT", "/api/v1/pools/main/strategy", "{"), 400, "NAME")
	long := make([]byte, 17<<20)
	f(r.admin("PUT", path, string(long)), 413, "the limit is")
	f(do(t, "PUT", at+path, string(long)), 401, "")
	if s := r.admin("PUT", path, string(long[:5<<20])); s.status != 422 { // longer than other bodies may be
		t.Errorf("%d %s; want the sandbox's word", s.status, s.body)
	}
	if s := r.admin("POST", "/api/v1/whatif", string(long[:5<<20])); s.status != 413 && s.err == nil {
		t.Errorf("%d %.100s; want 413: it is no module", s.status, s.body)
	}
	f(r.torn(path, other), 0, "")
	// The folder goes away: the same as one that cannot be written, for a user who may write everywhere.
	if err := os.Rename(dir, dir+"-gone"); err != nil {
		t.Fatal(err)
	}
	if s := r.admin("PUT", path, other); s.status != 500 || !strings.Contains(s.body, "make "+dir+" writable") {
		t.Errorf("%d %s; want 500 and the folder", s.status, s.body)
	}
	if err := os.Rename(dir+"-gone", dir); err != nil {
		t.Fatal(err)
	}
	write(t, r.file, strings.Replace(text, "strategies_dir", "#", 1)+"lissen = 1\n")
	f(r.admin("PUT", path, other), 409, "the configuration is not")
	write(t, r.file, strings.Replace(strings.Replace(text, "strategies_dir", "#", 1), `"mine"`, `"prefixaware"`, 1))
	if err := r.Reload(); err != nil {
		t.Fatal(err)
	}
	if s := r.admin("PUT", path, other); s.status != 409 || !strings.Contains(s.body, "set server.strategies_dir") {
		t.Errorf("%d %s; want that there is no folder", s.status, s.body)
	}
}

// torn sends the beginning of a module and hangs up.
func (r *running) torn(path, wasm string) seen {
	r.t.Helper()
	c, err := net.Dial("tcp", r.AdminAddr())
	if err != nil {
		r.t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprintf(c, "PUT %s HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n%s", path, adminToken,
		len(wasm), wasm[:len(wasm)-1])
	_ = c.(*net.TCPConn).CloseWrite()
	_ = c.SetReadDeadline(time.Now().Add(30 * time.Second))
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err == nil {
		resp.Body.Close()
		if resp.StatusCode == 200 {
			return seen{status: 200, body: "a torn body is taken"}
		}
	} else if err != io.EOF && err != io.ErrUnexpectedEOF && !strings.Contains(err.Error(), "reset") {
		r.t.Errorf("after a torn body: %v", err)
	}
	return seen{}
}

// TestUploadsNeedATokenOnLoopbackToo: what outlives the process is not changed by whoever is on the machine.
func TestUploadsNeedATokenOnLoopbackToo(t *testing.T) {
	text, dir := withModules(t, "prefixaware", 1)
	lines := strings.SplitN(text, "\n", 3)
	r := start(t, lines[0]+"\n"+lines[2], 1)
	for _, change := range [][2]string{{"PUT", "/api/v1/strategies/mine"}, {"DELETE", "/api/v1/strategies/mine"},
		{"PUT", "/api/v1/pools/main/strategy"}, {"DELETE", "/api/v1/pools/main/strategy"}} {
		if s := do(t, change[0], "http://"+r.AdminAddr()+change[1], `{"strategy":"kvaware"}`); s.status != 403 || !strings.Contains(s.body, "server.admin_token_file") {
			t.Errorf("%v: %d %s; want 403 and the remedy", change, s.status, s.body)
		}
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 0 || r.describe()[0].Strategy != "prefixaware" {
		t.Errorf("%v is there, %s serves", entries, r.describe()[0].Strategy)
	}
}

// TestAnActivationOutlivesARestart, and is over, with a word in the log, when the file names another strategy.
func TestAnActivationOutlivesARestart(t *testing.T) {
	t.Parallel()
	text, _ := withModules(t, "prefixaware", 1)
	r := start(t, text, 1)
	for _, name := range []string{"session", "roundrobin"} {
		if s := r.admin("PUT", "/api/v1/pools/main/strategy", `{"strategy":"`+name+`"}`); s.status != 200 || r.describe()[0].Strategy != name {
			t.Fatalf("%d %s; %s serves", s.status, s.body, r.describe()[0].Strategy)
		}
	}
	again, lines := startLogged(t, text, 1)
	if got := again.describe()[0].Strategy; got != "roundrobin" {
		t.Errorf("%s serves after a restart", got)
	}
	if l := lines.wait(t, "a strategy serves that the admin API has activated, in the place of the one that the file names; warmpath plugin deactivate ends that"); l["strategy"] != "roundrobin" || l["file_names"] != "prefixaware" {
		t.Errorf("%v", l)
	}
	write(t, again.file, strings.Replace(text, `"prefixaware"`, `"kvaware"`, 1))
	if err := again.Reload(); err != nil {
		t.Fatal(err)
	}
	lines.wait(t, "an activation is over, since the file has come to name another strategy, which serves; activate again if that was not meant")
	for _, want := range []string{"kvaware", "prefixaware"} { // and it does not come back with the file's old word
		if got := again.describe()[0].Strategy; got != want {
			t.Errorf("%s serves; want %s", got, want)
		}
		write(t, again.file, text)
		if err := again.Reload(); err != nil {
			t.Fatal(err)
		}
	}
}

// watched starts a router that watches the folder of its module mine.
func watched(t *testing.T) (r *running, dir string) {
	text, dir := withModules(t, "mine", 1)
	write(t, filepath.Join(dir, "mine.wasm"), countingModule(t, ""))
	r = start(t, text+"[strategies.mine]\nallow = ['kv']\n", 1)
	go r.Watch(t.Context())
	return r, dir
}

// TestAnUploadIsLoadedOnce: who watches the folder finds what the admin API has loaded already; a module that is written there
// by hand is loaded.
func TestAnUploadIsLoadedOnce(t *testing.T) {
	t.Parallel()
	r, dir := watched(t)
	time.Sleep(2 * watchPoll) // its first look
	if s := r.admin("PUT", "/api/v1/strategies/mine", countingModule(t, " ")); s.status != 200 {
		t.Fatalf("%d %s", s.status, s.body)
	}
	loaded := r.state.Load()
	time.Sleep(5 * watchPoll)
	if r.state.Load() != loaded {
		t.Error("it was loaded twice")
	}
	write(t, filepath.Join(dir, "mine.wasm"), countingModule(t, "  "))
	eventually(t, "the module of the folder serves", func() bool { return r.state.Load() != loaded })
}

// TestAChangeIsLoadedOnce: who watches the files sees a change that a signal or the admin API is loading, and does not load it
// again when that has ended.
func TestAChangeIsLoadedOnce(t *testing.T) {
	t.Parallel()
	r, dir := watched(t)
	r.reload.Lock()
	write(t, filepath.Join(dir, "mine.wasm"), countingModule(t, " "))
	time.Sleep(4 * watchPoll) // the watch has seen it twice, and waits
	err := r.manager.Reload(r.reloadFile)
	loaded := r.state.Load()
	r.reload.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(2 * watchPoll)
	if r.state.Load() != loaded {
		t.Error("it was loaded twice")
	}
}
