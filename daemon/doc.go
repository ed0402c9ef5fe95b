// Package daemon is the process: it wires the packages, runs, reloads, drains and closes. It decides nothing about a
// request. adapt makes the settings of each package of the configuration. Beside these two only admin/strategies,
// admin/register and cli read the configuration.
//
// # A request's way
//
//	front       HTTP from fiber becomes an exchange.Inbound; the header is judged before a byte of the body is read
//	sessionapi  SageMaker's session calls, and /sessions, in front of the exchange
//	exchange    body, choice, attempts, answer: one request from Inbound to its last byte
//	route       which worker, and what is learnt at its end; no socket, no clock, no goroutine
//	upstream    the request at the worker
//
// None of them imports one above it. unit keeps sockets over a restart or an upgrade, and sends systemd the state of
// the process. Three more are operator (/metrics, /api/v1), probe (asks workers for health) and discover (a pool's
// sources to its workers). Each doc.go says what its package does; house/wings_test.go has the imports that
// are allowed.
//
// # Who owns what
//
// State has three owners with a lock each: worker.Pool (who is up, load, speed), prefix.Index (who holds what),
// tier.Store (who is bound, through session.Bindings). The store is the daemon's. A [pool] runs the other two for one
// [[pools]] table, and outlives reloads as long as its name stays.
//
// A reload makes a new [state] with one front.Epoch: configuration, pools and settings, which never change. A request
// reads one epoch when it comes in and is served under no other. Workers come and go within an epoch: their
// connections are an exchange.Clients, which lives as long as the pool.
//
// Modules are loaded before anything is changed, since they are what can fail; on any error everything stays as it was.
// Workers that leave serve until the new ones have had their first health check (TestReloadIsAllOrNothing).
//
// # How its cost grows
//
// CPU of a request of 1 KB, in us (bench/data -run growth, two cores of a virtual machine, 2026-12; the same request
// took two thirds as long in another hour, so compare the ratios):
//
//	workers of a pool    4: 137      64: 137      256: 191      1,000: 153    10,000: 422
//	pools of 4 workers   1: 137      16: 123
//	connections in turn  10: 156     1,000: 149   9,000: 120
//
// In a pool of more than 32 workers the built-in strategies weigh candidates in place of all workers. A request to
// 1,000 workers, over one to 4, costs 1.2 with session and with roundrobin, and 3.4 with the rows of all (-run
// growth/strategies, a busy machine).
//
// testdata/bench/data/figures.md lists where the time of a request goes.
package daemon
