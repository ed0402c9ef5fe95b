package operator

import (
	"time"

	"github.com/warmpath/warmpath/daemon/transport/certificate"
)

// CertificateState is the certificate of a listener, in /api/v1/overview.
type CertificateState struct {
	Listener  string    `json:"listener"` // server, or kv_cache
	File      string    `json:"file"`
	NotBefore time.Time `json:"not_before"`
	NotAfter  time.Time `json:"not_after"`
	State     string    `json:"state"`             // ok, ends soon (in 14 days), expired, not yet valid
	Refused   string    `json:"refused,omitempty"` // why the newer one in the file is not used
}

const (
	certificateOK   = "ok"
	certificateEnds = "ends soon"
)

func describeCertificates(all []certificate.Stats, now time.Time) []CertificateState {
	list := []CertificateState{}
	for _, c := range all {
		s := CertificateState{Listener: c.Listener, File: c.File, NotBefore: c.NotBefore, NotAfter: c.NotAfter,
			State: certificateOK}
		switch {
		case now.After(c.NotAfter):
			s.State = "expired"
		case now.Before(c.NotBefore):
			s.State = "not yet valid"
		case c.NotAfter.Sub(now) < certificate.Soon:
			s.State = certificateEnds
		}
		if c.Refused != nil {
			s.Refused = c.Refused.Error()
		}
		list = append(list, s)
	}
	return list
}

// listenerLabels are the labels of every metric of a certificate.
var listenerLabels = []string{"listener"}

var ofCertificates = []reading[certificate.Stats]{
	gauge("certificate_not_after_seconds", "When the TLS certificate in force expires, in Unix time, by who listens with "+
		"it: server, kv_cache.", listenerLabels, func(c certificate.Stats) float64 { return float64(c.NotAfter.Unix()) }),
	gauge("certificate_refused", "1 while the files hold another TLS certificate or key that is not used: it is expired, "+
		"not valid yet, or no pair.", listenerLabels, func(c certificate.Stats) float64 { return bit(c.Refused != nil) }),
}
