// Package feed keeps a pool's index of what the workers report equal to what they say: it has a subscriber for each
// worker and data-parallel rank whose KV events are configured, and enters their events into cache/holdings.
//
// # Where a worker's events are
//
// kv_events of the worker, else of its pool: tcp://HOST:PORT or ipc://PATH, where * is the worker's own host, or
// "auto": GET /kv_event_sources of the worker, which vLLM has from 0.31 on, asked again when the worker comes back.
// Rank r is r ports above, or at _dp<r> behind the path, as vLLM places it.
//
// A worker whose endpoint has no * dials the router. server.kv_events_listen takes it. Its topic says who it is:
// kv@<worker id>@<model>, or the id alone. Without such a topic it is the one worker of all pools at the address it
// comes from; if there are several, it is refused with a line that names the remedy. vLLM has rank r dial r ports
// above the address that it is given, so there is a listener for each rank that is known of a worker that may dial. The
// batch says the rank, or else the port.
//
// # What the rows believe
//
// A worker's view is live while its subscriber is, and nothing speaks against it: it has answered requests and not
// published once (silent), the topic names another worker, the index had no room for what it says, or two publishers
// say that they are it. Each of these is a line in the log, once, and a state on the pages. The worker is then chosen
// by routed history, and no request fails.
//
// # How it hangs together
//
// Once a second Feed.Tick compares the workers that there are with the sources that run. So there are no hooks: a
// worker that came, left, got another slot, a restart, another address or more ranks is seen within a second, and the
// subscriber sees the end of a process by its connection before that. A subscriber's goroutine is the only writer of
// its worker.
package feed
