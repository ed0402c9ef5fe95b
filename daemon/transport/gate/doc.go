// Package gate decides what can be decided about a request before anything is spent on it: whose key it shows, whether
// a web page may ask, under which id it travels, and which fields describe its way to the worker. It knows no HTTP
// library: the process hands in header values and gets header values back, so that every rule is tested as a plain
// function.
//
// # Why every key is compared, by its digest
//
// Comparing text byte by byte, or looking it up in a map, answers sooner the earlier a guess is wrong, and over a
// network that difference can be averaged out of the noise. [Keys.Check] hashes what was given and compares 32 bytes in
// constant time with every key, without leaving early, as vLLM does. The time shows how long the guess was and how many
// keys there are, no more. A hundred keys cost some microseconds. Thousands of keys belong into a gateway in front. The
// keys themselves are not kept, only their digests: a heap dump or a stray %v shows none.
//
// # Why CORS is answered here
//
// vLLM answers any origin (FastAPI's CORSMiddleware with every list at "*"). A browser that talks to a router must
// get the same, but a preflight has no body to route by and no key to check, and with an origin list of the router's
// own the workers' "*" would open what the list closes. So [CORS] answers, in the words of Starlette, and [IsCORS]
// names the fields of a worker's answer to leave out: twice the same field makes a browser refuse the answer.
// [CORS.Headers] alone names the origin, for preflights too.
//
// # Why clients' text is cut
//
// A model's name may be as long as a body. [Cut] bounds what a log line or an answer repeats of it: six requests of 8
// MB made 47 MB of access log.
//
// # Why X-Forwarded-Proto and -Host are kept
//
// See [Forwarded]. A list of trusted proxies, the alternative, is one more thing to keep right on each change of the
// network, and guards nothing here: neither we nor vLLM decide anything by these fields.
package gate
