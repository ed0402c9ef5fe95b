// Package rig starts the processes that are measured and broken: warmpath, nginx, haproxy; and reads what they use
// from Linux' /proc.
//
// nginx runs with one worker process, keep-alive to its workers, proxy_buffering off and no access log; a body up to
// 512 KB stays in memory. haproxy runs with one thread, http-reuse always, abortonclose, http-no-delay and no log.
// Both try the next worker where they can: nginx also for POST (proxy_next_upstream non_idempotent), haproxy with
// redispatch, three retries and a health check every 2 s.
package rig
