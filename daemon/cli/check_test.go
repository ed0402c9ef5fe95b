package cli

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/conf"
	"github.com/warmpath/warmpath/daemon/lab/porttest"
	"github.com/warmpath/warmpath/daemon/lab/redistest"
)

// TestCheckToken: check refuses an operator's token with which serve would not start.
func TestCheckToken(t *testing.T) {
	f := func(token, want string) {
		t.Helper()
		dir := workplace(t)
		write(t, filepath.Join(dir, "x.toml"), strings.Replace(settings, "[server]", "[server]\nadmin_token_file = \"token\"", 1))
		if token != "" {
			write(t, filepath.Join(dir, "token"), token)
		}
		p := warmpath(t, dir, "check --config x.toml")
		if code := p.end(); code != 1 || !strings.Contains(p.String(), "x.toml:2: server.admin_token_file: "+want) {
			t.Errorf("exit %d: %s", code, p)
		}
	}
	f("", "open ")
	f("short\n", "the token in ")
}

// TestProbeOfPods: pods that only the cluster lists are a note. A list of workers that cannot be read is WRONG.
func TestProbeOfPods(t *testing.T) {
	t.Parallel()
	dir := workplace(t)
	pods := "[[pools]]\nname = \"p\"\nstrategy = \"roundrobin\"\nkubernetes = { service = \"vllm\", namespace = \"n\" }\n"
	write(t, filepath.Join(dir, "x.toml"), pods)
	out := warmpath(t, dir, "check --probe --config x.toml").succeed()
	if !strings.Contains(out, "note: pool p: pods") || strings.Contains(out, "WRONG") {
		t.Errorf("it says %q", out)
	}
	write(t, filepath.Join(dir, "x.toml"), pods+"workers_dns = \"none.invalid:8000\"\n")
	p := warmpath(t, dir, "check --probe --config x.toml")
	if code := p.end(); code != 1 || !strings.Contains(p.String(), "WRONG p ") {
		t.Errorf("exit %d: %s", code, p)
	}
}

// TestProbeOfRedis: `check --probe` asks each Redis of the file, and `status` of a daemon says what it lacks.
func TestProbeOfRedis(t *testing.T) {
	t.Parallel()
	dir := workplace(t)
	server := redistest.Start(t)
	server.Do("CONFIG SET requirepass right")
	f := func(url string) string {
		write(t, filepath.Join(dir, "url"), url)
		write(t, filepath.Join(dir, "x.toml"), "[server]\nlisten = \"127.0.0.1:0\"\nadmin = \""+porttest.Address(t)+"\"\n"+
			"[cache]\nredis_url_file = \"url\"\n"+
			"[[pools]]\nstrategy = \"roundrobin\"\nkubernetes = { service = \"vllm\", namespace = \"n\", api = \"http://127.0.0.1:1\" }\n")
		p := warmpath(t, dir, "check --probe --config x.toml")
		p.end()
		return p.String()
	}
	for _, r := range redistest.Refusals(t) {
		if out := f(r.URL); strings.Count(out, r.Remedy) != 2 || strings.Contains(out, "hidden") {
			t.Errorf("%s: %s", r.Name, out)
		}
	}
	if out := f(strings.Replace(server.URL(), "unix://", "unix://default:right@", 1)); strings.Contains(out, "WRONG") ||
		!strings.Contains(out, "ok    [cache]") || !strings.Contains(out, "ok    [history]") {
		t.Errorf("the right password: %s", out)
	}
	for _, table := range []string{"cache", "history"} {
		write(t, filepath.Join(dir, "two.toml"), "["+table+"]\nredis = \"redis://a:1,b:1\"\n[[pools]]\nworkers = [{ url = \"http://a\" }]\n")
		p := warmpath(t, dir, "check --config two.toml")
		if code := p.end(); code != 1 || !strings.Contains(p.String(), "it names several hosts") {
			t.Errorf("%s: %d %s", table, code, p)
		}
	}
}

// The guess at the cause of a worker that does not answer fits its error.
func TestGuesses(t *testing.T) {
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	secured := httptest.NewTLSServer(http.NotFoundHandler())
	defer secured.Close()
	secured.Config.ErrorLog = log.New(io.Discard, "", 0)
	x, err := newProber(&conf.Pool{})
	if err != nil {
		t.Fatal(err)
	}
	host := func(s *httptest.Server) string { return s.Listener.Addr().String() }
	for at, want := range map[string]string{
		"https://" + host(secured):      "set tls_ca_file",
		"https://" + host(plain):        "begin its url with http://",
		"http://" + host(secured):       "begin its url with https://",
		"http://" + host(plain):         "is vLLM there",
		"http://" + porttest.Address(t): "is vLLM there",
	} {
		_, err := x.ask(t.Context(), at+"/health")
		if err == nil || !strings.Contains(guess(err), want) {
			t.Errorf("%s: %v: %s; want %q", at, err, guess(err), want)
		}
	}
	for text, want := range map[string]string{
		`{"0":{"endpoint":"tcp://*:5557","topic":"kv"},"1":{"endpoint":"tcp://*:5558"}}`: "tcp://*:5557, tcp://*:5558",
		`{}`: "but names no rank", `[1]`: "but names no rank",
	} {
		if got := places([]byte(text)); got != want {
			t.Errorf("%s: %q; want %q", text, got, want)
		}
	}
}
