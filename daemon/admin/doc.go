// Package admin is the wing of operators: what they see of the running process, and what they change. It has no code of
// its own: each folder below it is a package.
//
//	operator    /metrics, /api/v1, profiles, the status page
//	decisions   the last requests, so that each can be explained
//	timeline    the last hour of the workers, and the events in it
//	tracing     OpenTelemetry spans
//	strategies  the one that serves a pool, canaries, shadows; modules from the admin API; what-if questions
//	register    workers that register themselves
//	unit        systemd's messages, and sockets that are handed to the next process
//
// Read operator/server.go first.
package admin
