// Package delivery takes strategy modules from the admin API, and makes them serve.
//
// # What does a delivery do?
//
// It checks the module as the daemon will load it, for every pool that it serves: imports, exports, signatures,
// options, a first decision. Then it writes the file, whole or not at all, into server.strategies_dir, and makes the
// daemon reload: a pool that names the strategy has the new version when the answer comes. When the reload is refused,
// it restores the file before. Deliveries do not wait for one another: the second is refused.
//
// # What does an activation do?
//
// It makes a strategy serve a pool in place of the one that the configuration file names. It is written down beside the
// modules (conf.Activation), so that it outlives reloads and restarts, and each of these logs it. It ends by another
// activation, by [Store.Deactivate], or when the file comes to name another strategy for the pool: the later word
// holds.
//
// # What lost?
//
// An activation that the process alone remembers: the next restart would bring the old strategy back without a word.
// Rewriting the configuration file: it belongs to its author, and is often mounted read-only.
//
// The room knows no other: it gets what it needs of the configuration and the sandbox as functions (adapt.Delivery).
package delivery
