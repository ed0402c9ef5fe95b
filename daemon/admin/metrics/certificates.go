package metrics

import "github.com/warmpath/warmpath/daemon/transport/certificate"

// listenerLabels are the labels of every metric of a certificate.
var listenerLabels = []string{"listener"}

var ofCertificates = []reading[certificate.Stats]{
	gauge("certificate_not_after_seconds", "When the TLS certificate in force expires, in Unix time, by who listens with "+
		"it: server, kv_cache.", listenerLabels, func(c certificate.Stats) float64 { return float64(c.NotAfter.Unix()) }),
	gauge("certificate_refused", "1 while the files hold another TLS certificate or key that is not used: it is expired, "+
		"not valid yet, or no pair.", listenerLabels, func(c certificate.Stats) float64 { return bit(c.Refused != "") }),
}
