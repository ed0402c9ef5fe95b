// Package subset chooses which workers of a large pool a router uses. Routers that know each other choose alike, so
// that each worker is in about as many subsets as any other ([Assign]).
//
// A subset never keeps a request from a worker that alone can serve it. It grows by the next workers in the router's
// own order: while fewer than three quarters of its workers are up, and while a label, a role, a model or its length is
// missing that the pool has. It grows by a worker at which a session lives, and by one that is drained. A worker stays
// for a while after the last need for it, so that its replacement is up before it goes.
package subset
