package adapt

import (
	"github.com/warmpath/warmpath/conf"
	"github.com/warmpath/warmpath/daemon/admin/tracing"
	"github.com/warmpath/warmpath/daemon/admin/whatif"
	"github.com/warmpath/warmpath/daemon/request/exchange"
	"github.com/warmpath/warmpath/host"
)

// Lab returns a lab that answers by the configuration and the epoch in force.
func Lab(h *host.Host, c func() *conf.Config, epoch func() *exchange.Epoch) *whatif.Lab {
	return &whatif.Lab{
		Epoch: epoch,
		Names: func() []string { return Strategies(c()) },
		Load: func(pool, strategy string) (*host.Strategy, error) {
			return StrategyFor(h, c(), pool, strategy)
		}}
}

// Tracing returns where spans of requests go.
func Tracing(c *conf.Config) tracing.Config {
	return tracing.Config{Endpoint: c.Tracing.Endpoint, Sample: c.Tracing.Sample}
}
