package daemon

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/vllmsim"
)

// called asks the operator's listener by a name in Host.
func (r *running) called(method, path, host string, header ...string) int {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), method, "http://"+r.AdminAddr()+path, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	req.Host = host
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := testClient.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	resp.Body.Close()
	return resp.StatusCode
}

// TestPagesOfOthersReadNothing: a page that makes a name of its own point at the operator's listener is refused,
// whatever the method, and profiles are for who has a token or a switch.
func TestPagesOfOthersReadNothing(t *testing.T) {
	f := sims(t, 1, vllmsim.Config{})
	toml := settings("prefixaware", f.URLs()...)
	r := start(t, toml, 1)
	want := func(r *running, status int, method, path, host string, header ...string) {
		t.Helper()
		if got := r.called(method, path, host, header...); got != status {
			t.Errorf("%s %s, Host %s, %q: %d; want %d", method, path, host, header, got, status)
		}
	}
	_, port, _ := strings.Cut(r.AdminAddr(), ":")
	for _, path := range []string{"/metrics", "/api/v1/pools", "/api/v1/sessions", "/", "/health", "/ready"} {
		for _, host := range []string{"evil.example", "evil.example:" + port, "localhost.evil.example", "127.0.0.1.evil.example", "notlocalhost"} {
			want(r, 403, "GET", path, host)
			want(r, 403, "HEAD", path, host)
		}
		for _, host := range []string{r.AdminAddr(), "localhost:" + port, "LocalHost", "localhost.", "a.localhost", "[::1]:" + port, "192.0.2.7"} {
			want(r, 200, "GET", path, host)
		}
	}
	drain := "/api/v1/pools/main/workers/w1/drain"
	want(r, 403, "POST", drain, "evil.example")
	want(r, 403, "POST", drain, r.AdminAddr(), "Origin", "https://evil.example")
	want(r, 403, "POST", drain, r.AdminAddr(), "Origin", "null")
	want(r, 200, "POST", drain, r.AdminAddr(), "Origin", "http://"+r.AdminAddr())
	want(r, 200, "DELETE", drain, r.AdminAddr())
	for _, p := range []string{"/debug/pprof/", "/debug/pprof/cmdline", "/debug/pprof/heap", "/debug/pprof/profile?seconds=1"} {
		want(r, 403, "GET", p, r.AdminAddr())
	}

	// A reload takes the switch up.
	write(t, r.file, withServer(toml, "pprof = true"))
	if err := r.Reload(); err != nil {
		t.Fatal(err)
	}
	want(r, 200, "GET", "/debug/pprof/cmdline", r.AdminAddr())
	want(r, 403, "GET", "/debug/pprof/cmdline", r.AdminAddr(), "Sec-Fetch-Site", "cross-site")
	want(r, 403, "GET", "/debug/pprof/cmdline", "evil.example")

	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("open-sesame-123"), 0o600); err != nil {
		t.Fatal(err)
	}
	r = start(t, withServer(toml, "admin_token_file = \""+token+"\""), 1)
	show := []string{"Authorization", "Bearer open-sesame-123"}
	want(r, 200, "GET", "/metrics", "router.internal", show...)
	want(r, 200, "GET", "/debug/pprof/cmdline", "router.internal", show...)
	want(r, 401, "GET", "/metrics", "router.internal")
	want(r, 401, "GET", "/debug/pprof/cmdline", r.AdminAddr())
	want(r, 200, "GET", "/health", "router.internal")
	want(r, 403, "POST", drain, "router.internal", append(show, "Origin", "https://evil.example")...)
}

// TestOperatorsTokenIsReloaded: a reload takes a changed token up, and keeps the one in force if the file holds none.
func TestOperatorsTokenIsReloaded(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	write(t, file, "open-sesame-123")
	sim := sims(t, 1, vllmsim.Config{})
	r := start(t, withServer(settings("roundrobin", sim.URLs()...), "admin_token_file = \""+file+"\""), 1)
	status := func(token string) int {
		t.Helper()
		return r.called("GET", "/metrics", r.AdminAddr(), "Authorization", "Bearer "+token)
	}
	reload := func(text string) {
		t.Helper()
		write(t, file, text)
		if err := r.Reload(); err != nil {
			t.Fatal(err)
		}
	}
	reload("open-sesame-456\n")
	if is, was := status("open-sesame-456"), status("open-sesame-123"); is != 200 || was != 401 {
		t.Errorf("the new token: %d, the old one: %d; want 200 and 401", is, was)
	}
	reload("short")
	if s := status("open-sesame-456"); s != 200 {
		t.Errorf("after a file without a token: %d; want 200", s)
	}
}

// TestTheTokenOfTheStartIsWatched: the file of the start is in force until the next one, and so are its changes, also
// when the configuration names another by now.
func TestTheTokenOfTheStartIsWatched(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "token")
	write(t, file, "open-sesame-123")
	write(t, file+".next", "open-sesame-789")
	toml := withServer(settings("roundrobin", sims(t, 1, vllmsim.Config{}).URLs()...), "admin_token_file = \""+file+"\"")
	r := start(t, toml, 1)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go r.Watch(ctx)
	write(t, r.file, strings.Replace(toml, "/token\"", "/token.next\"", 1))
	if err := r.Reload(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(4 * watchPoll) // no look has anything left to reload
	write(t, file, "open-sesame-456")
	eventually(t, "the new token of the file in force opens", func() bool {
		return r.called("GET", "/metrics", r.AdminAddr(), "Authorization", "Bearer open-sesame-456") == 200
	})
}
