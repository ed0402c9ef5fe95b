// Package admission decides what may be refused before a worker is asked. A [Request] is a client's request from its
// arrival on: what its body says, and what its caller may ask for. It knows no worker that was chosen.
//
// permit.go reads the body once and compares it with the rights of the key, alias.go puts a model in place of a name,
// claim.go reads which session the request claims, and readon.go reads more of a long body where one of these needs
// it. limited.go and limitwait.go ask the limits of the key, waiting.go has the request's [Place] in the queue of its
// pool, and underway.go follows what goes on at a worker after the answer. lethal.go remembers the requests with which
// workers have ended.
package admission
