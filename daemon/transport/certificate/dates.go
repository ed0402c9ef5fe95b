package certificate

import (
	"crypto/x509"
	"time"
)

// Outside returns why clients refuse the certificate at that time, "" if it is within its dates. Only the first
// certificate of a file counts: chains often end in an authority that has expired and that no client needs any more.
func Outside(leaf *x509.Certificate, now time.Time) string {
	switch {
	case now.After(leaf.NotAfter):
		return "expired on " + leaf.NotAfter.UTC().Format(time.RFC3339)
	case now.Before(leaf.NotBefore):
		return "is not valid before " + leaf.NotBefore.UTC().Format(time.RFC3339)
	}
	return ""
}
