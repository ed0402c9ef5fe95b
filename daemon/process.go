package daemon

import (
	"time"

	"github.com/warmpath/warmpath/conf"
	"github.com/warmpath/warmpath/daemon/admin/operator"
	"github.com/warmpath/warmpath/daemon/request/exchange"
)

// process is the daemon as its rooms see it. It implements operator.Process and strategies.Process.
type process struct{ *Daemon }

func (p process) Configuration() *conf.Config { return p.state.Load().conf }
func (p process) Settings() map[string]any    { return conf.Shown(p.state.Load().inForce) }
func (p process) Served() *exchange.Epoch     { return &p.epoch().Epoch }
func (p process) Pools() []*operator.Pool     { return p.shown() }
func (p process) Draining() bool              { return p.front.Draining() }
func (p process) Pprof() bool                 { return p.Configuration().Server.Pprof }

func (p process) Upgrade(wait time.Duration) (pid int, err error) { return p.manager.Upgrade(wait) }

func (p process) Clients() operator.ClientStats {
	s := p.front.Stats()
	return operator.ClientStats{InFlight: s.InFlight, LostLines: s.LostLines, Open: s.Connections.Open,
		Accepted: s.Connections.Accepted, Refused: s.Connections.Refused, Gone: s.Connections.Gone,
		SlowClosed: s.Connections.SlowClosed}
}
