package direct

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// TestClient: it asks neither whom a worker names, nor the environment's proxy.
func TestClient(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the other one is asked") }))
	defer other.Close()
	s := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	defer s.Close()
	t.Setenv("HTTP_PROXY", other.URL)
	own := http.Transport{Proxy: http.ProxyFromEnvironment}
	for _, c := range []*http.Client{Client(nil, time.Minute), Client(&own, 0)} {
		if c.Transport.(*http.Transport).Proxy != nil {
			t.Error("it uses a proxy")
		}
		r, err := c.Post(s.URL, "text/plain", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Body.Close()
		if r.StatusCode != http.StatusTemporaryRedirect {
			t.Errorf("status %d", r.StatusCode)
		}
	}
}
