package conf

import (
	"fmt"
	"net/url"
)

// Tracing is where spans of requests go. Headers, certificates and timeouts of the collector are those of
// OpenTelemetry's own environment variables, OTEL_EXPORTER_OTLP_*.
type Tracing struct {
	Endpoint string  `toml:"endpoint"` // URL of a collector's OTLP/HTTP; "" = none
	Sample   float64 `toml:"sample"`   // share of the requests that bring no traceparent
	Metrics  bool    `toml:"metrics"`  // gen_ai.server.* go to the collector, too
}

func defaultTracing() Tracing { return Tracing{Sample: 1} }

func checkTracing(r *report, t *Tracing) {
	if !within(t.Sample, 0, 1) {
		r.outOfRange("tracing.sample", t.Sample, "write a share from 0 to 1, as 0.1")
	}
	if t.Endpoint == "" {
		return
	}
	u, err := url.Parse(t.Endpoint)
	switch {
	case err != nil, u.Scheme != "http" && u.Scheme != "https", u.Hostname() == "", u.RawQuery != "", u.Fragment != "":
		what := fmt.Sprintf("%.80q is no URL of a collector", t.Endpoint)
		if err == nil && u.User != nil {
			what = "it is no URL of a collector" // it may hold a secret
		}
		r.add("tracing.endpoint", what, `write as "http://127.0.0.1:4318"`)
	case u.User != nil:
		r.add("tracing.endpoint", "it has a user or password in it",
			"put what the collector asks for into OTEL_EXPORTER_OTLP_HEADERS of the environment")
	}
}
