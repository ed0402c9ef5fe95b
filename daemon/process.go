package daemon

import (
	"github.com/warmpath/warmpath/conf"
	"github.com/warmpath/warmpath/daemon/request/exchange"
)

// process is the daemon as its rooms ask it.
type process struct{ *Daemon }

// Configuration is the one that was loaded last.
func (p process) Configuration() *conf.Config { return p.state.Load().conf }

// Served is what is in force for a request that comes in now.
func (p process) Served() *exchange.Epoch { return &p.epoch().Epoch }
