// Package wire is HTTP/1.1 by hand on raw sockets, for measuring a proxy and for breaking it: a client and a worker
// that see and send every byte themselves.
//
// net/http on either side would repair what the tests look for (it retries on stale connections, refuses to send what
// is ambiguous, hides where an answer broke off) and costs several times the proxy that is measured. Both sides are
// lean on purpose: what they do not need of HTTP, they do not understand.
//
// What a worker does with a request is in the request's query, or in its field X-Wish as a query would have it, so that
// the client decides and no state is shared:
//
//	hold=MS        wait before the answer, as queue and prefill do
//	chunks=N       answer with a stream of N events and [DONE]; without it, with one JSON
//	gap=MS         between two events
//	pad=BYTES      so much longer is each event
//	mark=TEXT      stands in each event and answer: bytes of another's answer are seen
package wire
