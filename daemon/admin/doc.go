// Package admin is the wing of operators: what they see of the running process, and what they change. It has no code of
// its own: each folder below it is a package.
//
//	operator   /metrics, /api/v1, profiles, the status page
//	decisions  the last requests, so that each can be explained
//	tracing    OpenTelemetry spans
//	crew       the strategies of each pool: the one that serves, canaries, shadows
//	delivery   strategy modules that come over the admin API
//	shadow     strategies that decide without effect, for comparison
//	whatif     where a request would go, without sending it
//	unit       systemd's messages, and sockets that are handed to the next process
//
// Read operator/server.go first.
package admin
