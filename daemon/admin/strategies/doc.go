// Package strategies has the strategies of the pools: the one that serves a pool, the canaries that serve a part of its
// requests, the shadows that decide without effect. It loads their modules, takes new ones from the admin API, and
// answers where a request would go.
//
//	module    one strategy, loaded with the options of a pool
//	loaded    the strategies of every pool: a reload loads all before it changes anything, since a module can fail
//	serving   the strategies of a running pool
//	shadows   what shadows would have chosen, compared with what was chosen
//	listed    the strategies that there are, and whom each serves
//	store     modules that come over the admin API
//	activation  a strategy that serves in place of the one that the configuration file names
//	whatif    where a request would go, by each strategy, without sending it
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
// It is written down beside the modules (conf.Activation), so that it outlives reloads and restarts, and each of these
// logs it. It ends by another activation, by [Store.Deactivate], or when the file comes to name another strategy for
// the pool: the later word holds.
//
// # What does a shadow cost, and show?
//
// The request's goroutine copies what the strategy decided by (route.Snapshot) into a bounded queue, and one goroutine
// a pool runs the shadows on it, each on the same copy. So a shadow costs the live path a copy of the rows, and what
// comes faster than the shadows take it is dropped and counted: a pool at 1,000 requests/s leaves 1 ms for a decision,
// of which a strategy needs a few microseconds. Under load it wakes for many requests at once ([Shadows.Run]).
//
// Agreement is the same first worker. A shadow that declines or fails is counted so, and not as one that disagrees. The
// tokens that the chosen workers were believed to hold show what the shadow would gain or lose by reuse, before any
// request is risked; the time and fuel show what it costs. The comparison cannot show how the fleet would have gone on:
// the shadow's choices leave no load behind, and the next request finds the fleet as the live strategy left it. The lab
// can.
//
// A shadow sees the rows that the live strategy saw. One that goes by what workers report (kvaware) sees that too: the
// pool then finds the ids of every prompt, and looks up its reports beside the request, for the shadow alone.
//
// # How is a question answered?
//
// [Lab] asks the pool's own strategy as it serves. It loads those that serve another pool or none for the question and
// closes them after it, so that none of them keeps memory while nobody asks; the compiled modules are cached, and the
// load takes some 10 ms each. Questions wait for one another: a box on a page is no load test. A question's prompt is
// read, hashed and forgotten: it enters no index, no log and no record.
//
// why.md has what was tried and lost.
package strategies
