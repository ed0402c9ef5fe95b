package daemon

import (
	"context"
	"time"

	"github.com/warmpath/warmpath/conf"
	"github.com/warmpath/warmpath/daemon/admin/operator"
	"github.com/warmpath/warmpath/daemon/request/exchange"
	"github.com/warmpath/warmpath/daemon/request/front"
)

// process is the daemon as its rooms see it. It implements front.Backend, operator.Process, strategies.Process and
// unit.Handover.
type process struct{ *Daemon }

func (p process) Configuration() *conf.Config { return p.state.Load().conf }
func (p process) Settings() map[string]any    { return conf.Shown(p.state.Load().inForce) }
func (p process) Epoch() *front.Epoch         { return p.epoch() }
func (p process) Served() *exchange.Epoch     { return &p.epoch().Epoch }
func (p process) Pools() []*operator.Pool     { return p.shown() }
func (p process) Draining() bool              { return p.front.Draining() }
func (p process) Pprof() bool                 { return p.Configuration().Server.Pprof }

func (p process) Upgrade(wait time.Duration) (pid int, err error) { return p.manager.Upgrade(wait) }

func (p process) Ready(draining bool) (bool, any) { return operator.Readiness(p.shown(), draining) }

func (p process) Serve(ctx context.Context, in *exchange.Inbound) *exchange.Outbound {
	switch in.Endpoint.Role {
	case exchange.Sessions, exchange.Invocations, exchange.SageMaker:
		return p.api.Serve(ctx, in)
	}
	return p.server.Serve(ctx, in)
}

func (p process) Ended(in *exchange.Inbound, took time.Duration, sent int64) {
	p.ring.Ended(in, took, sent)
}
func (p process) Trace(in *exchange.Inbound, at time.Time) { p.tracer.Begin(in, at) }
func (p process) Hold() (release func())                   { return p.memory.Hold() }
func (p process) Give() []byte                             { return operator.Drains(p.shown()) }
func (p process) Take(given []byte)                        { operator.DrainAgain(p.shown(), given, p.log) }

func (p process) Clients() operator.ClientStats {
	s := p.front.Stats()
	return operator.ClientStats{InFlight: s.InFlight, LostLines: s.LostLines, Open: s.Connections.Open,
		Accepted: s.Connections.Accepted, Refused: s.Connections.Refused, Gone: s.Connections.Gone,
		SlowClosed: s.Connections.SlowClosed}
}
