package adapt

import (
	"github.com/warmpath/warmpath/conf"
	"github.com/warmpath/warmpath/daemon/admin/tracing"
)

// Tracing returns where spans of requests go.
func Tracing(c *conf.Config) tracing.Config {
	return tracing.Config{Endpoint: c.Tracing.Endpoint, Sample: c.Tracing.Sample,
		Metrics: c.Tracing.Metrics}
}
