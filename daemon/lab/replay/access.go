package replay

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
)

// access is what a daemon with keys and a certificate of one's own asks of its clients.
type access struct {
	key   string      // for Authorization; "" = none
	trust *tls.Config // nil = the system's authorities
}

// newAccess reads the files of a Config.
func newAccess(c *Config) (a access, err error) {
	if c.KeyFile != "" {
		text, err := os.ReadFile(c.KeyFile)
		if err != nil {
			return a, fmt.Errorf("replay: the key file cannot be read: %w", err)
		}
		a.key = strings.TrimSpace(string(text))
		if a.key == "" || strings.ContainsAny(a.key, "\r\n") {
			return a, fmt.Errorf("replay: %s must hold one API key on one line", c.KeyFile)
		}
	}
	if c.CAFile == "" {
		return a, nil
	}
	pem, err := os.ReadFile(c.CAFile)
	if err != nil {
		return a, fmt.Errorf("replay: the authorities' file cannot be read: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return a, fmt.Errorf("replay: there is no certificate in PEM in %s", c.CAFile)
	}
	a.trust = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	return a, nil
}

// keyed sends requests with an API key; "" = without.
type keyed struct {
	http.RoundTripper
	key string
}

// RoundTrip implements [http.RoundTripper].
func (k keyed) RoundTrip(req *http.Request) (*http.Response, error) {
	if k.key != "" {
		req.Header.Set("Authorization", "Bearer "+k.key) // the request is nobody else's
	}
	return k.RoundTripper.RoundTrip(req)
}

// remedy returns what to try after the first requests have all failed with err.
func remedy(c *Config, err error) string {
	var status *statusError
	var unknown x509.UnknownAuthorityError
	switch {
	case errors.As(err, &status) && status.code == 401 && c.KeyFile == "":
		return "give the file of a key in --key-file"
	case errors.As(err, &status) && status.code == 401:
		return "is what " + c.KeyFile + " holds one of the daemon's keys?"
	case errors.As(err, &unknown):
		return "give the authority that signed the daemon's certificate in --ca-file"
	}
	return fmt.Sprintf("is the daemon at %s, and does its /v1/models list the model?", c.URL)
}
