// Package feed keeps a pool's index of what the workers hold equal to their reports. It has a subscriber for each
// worker and data-parallel rank whose KV events are configured, and enters their events into cache/holdings.
//
// # Where a worker's events are
//
// kv_events of the worker, else of its pool: tcp://HOST:PORT or ipc://PATH, where * is the worker's own host, or
// "auto": GET /kv_event_sources of the worker, which vLLM has from 0.31 on, asked again when the worker comes back.
// Rank r is r ports above, or at _dp<r> behind the path, as vLLM places it.
//
// A worker whose endpoint has no * dials the router at server.kv_events_listen. Its topic names it: kv@<worker
// id>@<model>, or the id alone. Without such a topic it is the one worker of all pools at the address it comes from. If
// there are several, the router refuses it with a log line that names the remedy. vLLM has rank r dial r ports above
// its configured address, so there is a listener for each known rank of a worker that may dial. The batch names the
// rank, or else the port gives it.
//
// # What the rows believe
//
// A worker's view is live while its subscriber is, and nothing speaks against it: it has answered requests and not
// published once (silent), the topic names another worker, the index had no room for its events, or two publishers use
// its name. The router logs each of these once, and the pages show it as a state. The worker is then chosen by routed
// history, and no request fails.
package feed
