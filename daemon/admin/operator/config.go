package operator

import (
	"log/slog"
	"net"
	"time"

	"github.com/warmpath/warmpath/cache/lmcache"
	"github.com/warmpath/warmpath/cache/parts/bind"
	"github.com/warmpath/warmpath/cache/tier"
	"github.com/warmpath/warmpath/daemon/admin/decisions"
	"github.com/warmpath/warmpath/daemon/admin/metrics"
	"github.com/warmpath/warmpath/daemon/admin/readiness"
	"github.com/warmpath/warmpath/daemon/admin/register"
	"github.com/warmpath/warmpath/daemon/admin/strategies"
	"github.com/warmpath/warmpath/daemon/admin/tracing"
	"github.com/warmpath/warmpath/daemon/kv/kvcache"
	"github.com/warmpath/warmpath/daemon/peers"
	"github.com/warmpath/warmpath/daemon/request/front"
	"github.com/warmpath/warmpath/daemon/request/ledger"
	"github.com/warmpath/warmpath/daemon/transport/certificate"
)

// RoutersState is the answer of /api/v1/routers.
type RoutersState = peers.Stats

// Process is the process that an operator looks at and changes.
type Process interface {
	// Pools are those in force.
	Pools() []*readiness.Pool
	// Clients are the counts of the clients' side.
	Clients() front.Stats
	// Draining reports whether the process is about to end.
	Draining() bool
	// Settings are the configuration in force, without its secrets.
	Settings() map[string]any
	// Pprof reports whether profiles may be taken without a token.
	Pprof() bool
	// Reload reads the configuration's file again.
	Reload() error
	// Upgrade starts a new process that takes over within wait.
	Upgrade(wait time.Duration) (pid int, err error)
}

// Config configures a Server.
type Config struct {
	Log     *slog.Logger
	Metrics *metrics.Metrics
	Process Process
	Store   *tier.Store
	KVCache *kvcache.Cache      // nil, or one without a listener: no KV cache is configured
	LMCache *lmcache.Controller // nil = there is none
	Peers   *peers.Peers        // nil = there are none
	Limits  *ledger.Ledger      // of keys; nil = there are none

	Certificates *certificate.All

	Memory     *peers.StateFile // nil = there is none
	Spans      *tracing.Tracer
	Ring       *decisions.Ring
	WhatIf     *strategies.Lab
	Strategies *strategies.Store
	Register   *register.Register
	Registrar  register.Process
	Succeeds   bool // this process takes over from another

	Bind bind.Binder // of Admin; nil = the system

	Listener       net.Listener // given at the start of the process; nil = Admin is bound
	Admin          string       // host:port
	Binary         string       // as a shell finds it
	AdminTokenFile string       // "" = no token
	Connections    int          // at a time
	ReadTimeout    time.Duration
	IdleTimeout    time.Duration
	Wrap           func(net.Listener) net.Listener // makes a listener outlast failed accepts; nil = unchanged
}
