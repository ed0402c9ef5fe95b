package redistest

import (
	"strconv"
	"testing"

	"github.com/warmpath/warmpath/daemon/lab/certtest"
	"github.com/warmpath/warmpath/daemon/lab/porttest"
)

// TLS starts a server that asks its clients for the certificate of pair, which a private authority signed, as
// redis-server does by default. It returns the server's URL.
func TLS(t testing.TB) (url string, pair certtest.Pair) {
	t.Helper()
	pair = certtest.New(t, t.TempDir(), "redis", "redis")
	port := strconv.Itoa(porttest.Row(t, 1))
	Start(t, "--tls-port", port, "--tls-cert-file", pair.Cert, "--tls-key-file", pair.Key, "--tls-ca-cert-file", pair.Cert)
	return "rediss://127.0.0.1:" + port, pair
}
