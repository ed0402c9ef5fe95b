// Package admin is the wing of operators: what they see of the running process, and what they change. It has no code of
// its own: each folder below it is a package.
//
//	operator    /api/v1, profiles, the status page
//	metrics     /metrics: what becomes of requests, and the counts of other packages
//	readiness   a pool as an operator sees it, and whether it can serve
//	decisions   the last requests, so that each can be explained
//	timeline    the last hour of the workers, and the events in it
//	tracing     OpenTelemetry spans
//	strategies  the one that serves a pool, canaries, shadows; modules from the admin API; what-if questions
//	register    workers that register themselves
//	unit        systemd's messages, and sockets that are handed to the next process
//
// Read operator/server.go first.
package admin
