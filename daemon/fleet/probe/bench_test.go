package probe

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"golang.org/x/time/rate"
)

func BenchmarkParseMetrics(b *testing.B) {
	page, err := os.ReadFile("testdata/metrics-0.32.0.txt")
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(page)))
	b.ReportAllocs()
	for b.Loop() {
		parseMetrics(page)
	}
}

// BenchmarkHealth is one health check, on a connection of its own and on a kept one.
func BenchmarkHealth(b *testing.B) {
	serve := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	plain, secure := httptest.NewServer(serve), httptest.NewTLSServer(serve)
	defer plain.Close()
	defer secure.Close()
	roots := x509.NewCertPool()
	roots.AddCert(secure.Certificate())
	for name, url := range map[string]string{"http": plain.URL, "https": secure.URL} {
		a := newAsker(Config{TLS: &tls.Config{RootCAs: roots}}, rate.NewLimiter(rate.Inf, 0))
		for how, client := range map[string]*http.Client{"kept": a.Client, "fresh": a.fresh} {
			q := question{client: client, url: url + "/health", wait: time.Minute, limit: maxHealth}
			b.Run(name+"/"+how, func(b *testing.B) {
				for b.Loop() {
					if status, _, err := a.get(b.Context(), q); status != 200 || err != nil {
						b.Fatal(status, err)
					}
				}
			})
		}
	}
}
