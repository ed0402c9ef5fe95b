// Package strategies has the strategies of the pools: the one that serves a pool, the canaries that serve a part of its
// requests, the shadows that decide without effect. It loads their modules, takes new ones from the admin API, and
// answers where a request would go.
//
//	module    one strategy, loaded with the options of a pool
//	loaded    the strategies of every pool: a reload loads all before it changes anything, since a module can fail
//	serving   the strategies of a running pool
//	shadows   the choices of shadows, compared with those of the live strategy
//	listed    all strategies, and the pools that each serves
//	store     modules that come over the admin API
//	activation  a strategy that serves in place of the one that the configuration file names
//	whatif    where a request would go, by each strategy, without sending it
//
// # What does a delivery do?
//
// It checks the module as the daemon will load it, for every pool that it serves: imports, exports, signatures,
// options, a first decision. Then it writes the file, whole or not at all, into server.strategies_dir, and makes the
// daemon reload: a pool that names the strategy has the new version when the answer comes. When the reload is refused,
// it restores the former file. Deliveries do not wait for one another: the second is refused.
//
// # What does an activation do?
//
// It is written down beside the modules (conf.Activation), so that it outlives reloads and restarts, and each of these
// logs it. It ends by another activation, by [Store.Deactivate], or when the file comes to name another strategy for
// the pool: the later word holds.
//
// why.md has the reasons and the details, and what lost.
package strategies
