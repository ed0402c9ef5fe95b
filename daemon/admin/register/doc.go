// Package register keeps the workers that registered over the admin API: a trainer starts and ends them, so no file,
// name or service lists them. It is one more source of a pool's workers, beside those of package discover.
//
// # Rules
//
//   - A worker has the keys, the defaults and the checks of [[pools.workers]].
//   - The same registration again renews the first one. One that differs in any key is refused, and the refusal names
//     the keys.
//   - A registered worker never takes the place of another: its id must be free in its pool, and its address in
//     all pools. If the file comes to name the same address later, the file's worker counts.
//   - A registration with a ttl ends when it was not renewed for so long. The worker then gets no new request, and its
//     open requests run to their end, as with one that another source no longer gives.
//   - With server.state_file the registrations are written to a file beside it at each change, and a start reads them.
//     A ttl begins anew then: nobody could renew it while the router was away.
//   - While an upgrade starts the new process, which has read the file, no registration is taken or ended.
package register
