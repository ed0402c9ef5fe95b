package operator

import (
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gofiber/fiber/v2"
)

func TestOurName(t *testing.T) {
	f := func(called, own string, want bool) {
		t.Helper()
		if got := ourName(called, own); got != want {
			t.Errorf("ourName(%q, %q) = %v; want %v", called, own, got, want)
		}
	}
	f("127.0.0.1:9090", "", true)
	f("127.0.0.1", "", true)
	f("10.1.2.3:9090", "", true)
	f("[::1]:9090", "", true)
	f("[::1]", "", true)
	f("::1", "", true)
	f("localhost", "", true)
	f("LocalHost:9090", "", true)
	f("localhost.:9090", "", true) // the root's dot
	f("me.localhost:1", "", true)
	f("", "", true) // HTTP/1.0
	f("admin.corp:9090", "admin.corp", true)
	f("Admin.Corp.", "admin.corp", true)

	f("admin.corp:9090", "", false)
	f("evil.example", "admin.corp", false)
	f("evil.example:9090", "127.0.0.1", false)
	f("127.0.0.1.evil.example", "", false)
	f("localhost.evil.example", "", false)
	f("notlocalhost", "", false)
	f("1.2.3", "", false)
}

func TestOwnPagesOnly(t *testing.T) {
	f := func(token bool, method, host, origin string, want int, sent ...string) {
		t.Helper()
		app := fiber.New()
		app.Use(ownPagesOnly(token, "admin.corp:9090"))
		app.All("/", func(c *fiber.Ctx) error { return nil })
		r := httptest.NewRequest(method, "/", nil)
		r.Host = host
		if origin != "" {
			r.Header.Set("Origin", origin)
		}
		for i, name := range []string{"Sec-Fetch-Site", "Sec-Fetch-Mode"}[:len(sent)] {
			r.Header.Set(name, sent[i])
		}
		resp, err := app.Test(r)
		if err != nil || resp.StatusCode != want {
			t.Errorf("token %v: %s of %s from %q: %v, %v; want %d", token, method, host, origin, resp, err, want)
		}
	}
	f(false, "GET", "127.0.0.1:9090", "", 200)
	f(false, "GET", "admin.corp:9090", "", 200)
	f(false, "GET", "evil.example", "", 403)
	f(true, "GET", "evil.example", "", 200) // with the token any name will do
	f(false, "GET", "127.0.0.1:9090", "http://evil.example", 200)
	f(false, "HEAD", "127.0.0.1:9090", "http://evil.example", 200)
	f(false, "POST", "127.0.0.1:9090", "", 200) // not a browser
	f(false, "POST", "127.0.0.1:9090", "http://127.0.0.1:9090", 200)
	f(false, "POST", "127.0.0.1:9090", "http://evil.example", 403)
	f(true, "DELETE", "127.0.0.1:9090", "http://evil.example", 403)
	f(true, "POST", "127.0.0.1:9090", "null", 403)
	f(false, "GET", "127.0.0.1:9090", "", 200, "same-origin", "cors")
	f(false, "GET", "127.0.0.1:9090", "", 200, "none", "navigate")
	f(false, "GET", "127.0.0.1:9090", "", 200, "cross-site", "navigate") // a link was followed
	f(false, "GET", "127.0.0.1:9090", "", 403, "cross-site", "no-cors")  // an image
	f(true, "GET", "127.0.0.1:9090", "", 403, "same-site", "no-cors")
	f(false, "POST", "127.0.0.1:9090", "", 403, "cross-site", "navigate") // a form
}

func TestRequireToken(t *testing.T) {
	app := fiber.New(fiber.Config{ErrorHandler: adminError})
	secret := bearer{file: filepath.Join(t.TempDir(), "token")}
	if err := os.WriteFile(secret.file, []byte("secret-token\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := secret.read(); err != nil {
		t.Fatal(err)
	}
	app.Use(secret.require)
	app.All("/", func(c *fiber.Ctx) error { return nil })
	f := func(authorization string, want int) {
		t.Helper()
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Set("Authorization", authorization)
		resp, err := app.Test(r)
		if err != nil || resp.StatusCode != want {
			t.Fatalf("%q: %v, %v; want %d", authorization, resp, err, want)
		}
		said, _ := io.ReadAll(resp.Body)
		if want == 401 && !strings.Contains(string(said), `{"error":"send the token of server.admin_token_file`) {
			t.Errorf("%q: the answer is %s", authorization, said)
		}
	}
	f("Bearer secret-token", 200)
	f("Bearer secret-toke", 401)
	f("Bearer secret-token ", 200) // a field's value ends before its blanks
	f("secret-token", 401)
	f("", 401)
}

// mayProfile is a process that allows profiles without a token, or not.
type mayProfile struct {
	Process
	allowed bool
}

func (p mayProfile) Pprof() bool { return p.allowed }

func TestProfilesAllowed(t *testing.T) {
	f := func(token, allowed bool, site string, want int) {
		t.Helper()
		app := fiber.New()
		app.Use(profilesAllowed(token, mayProfile{allowed: allowed}))
		app.All("/", func(c *fiber.Ctx) error { return nil })
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Set("Sec-Fetch-Site", site)
		if resp, err := app.Test(r); err != nil || resp.StatusCode != want {
			t.Errorf("token %v, pprof %v, from %q: %v, %v; want %d", token, allowed, site, resp, err, want)
		}
	}
	f(false, false, "", 403)
	f(false, true, "", 200)
	f(false, true, "none", 200)
	f(false, true, "same-origin", 200)
	f(false, true, "same-site", 403)
	f(false, true, "cross-site", 403)
	f(true, false, "cross-site", 200)
}
