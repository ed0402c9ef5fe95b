// Package delivery takes strategy modules in from the admin API, and has them serve.
//
// # What does a delivery do?
//
// It checks the module as the daemon will load it, for every pool that it serves: imports, exports, signatures,
// options, a first decision. Then it writes the file, whole or not at all, into server.strategies_dir, and has the
// daemon reload: a pool that names the strategy has the new version when the answer comes. When the reload is refused,
// the file of before is put back. Deliveries do not wait for one another: the second is refused.
//
// # What does an activation do?
//
// It has a strategy serve a pool in the place of the one that the configuration file names. That is written down
// beside the modules (conf.Activation), so that it outlives reloads and restarts, and the log says so at each. It ends
// by another activation, by [Store.Deactivate], or when the file comes to name another strategy for the pool: the later
// word holds.
//
// # What lost?
//
// An activation that the process alone remembers: the next restart would bring the old strategy back without a word.
// Rewriting the configuration file: it belongs to its author, and is often mounted read-only.
//
// The room knows nobody: what it needs of the configuration and the sandbox are functions (adapt.Delivery).
package delivery
