// Package discover makes one list of workers of a pool's sources: those that the configuration names itself, those of
// workers_file, one for each address that the name of workers_dns has, and one for each pod of a Kubernetes service,
// which package endpoints follows.
//
// # Rules
//
//   - The list has one worker a URL. The configuration's own description of a worker goes before that of the file,
//     that before the name's, and that before that of Kubernetes.
//   - The last answer of a source holds until its next. A file that is wrong or away, or a name server that fails or
//     knows no address, takes no worker away: health checks show which ones are really gone.
//   - The router asks for a name every 5 s, give or take a tenth. It sorts the addresses, as servers give them in any
//     order. It reads a file when the file changes.
//   - A name with as many IPv4 as IPv6 addresses is that of workers with both: each is one worker, at its IPv4
//     address (family.go).
//
// # Why one query fails alone
//
// The IPv4 and the IPv6 addresses of a name are two queries. If one fails and the other does not, the known
// addresses of the failed kind stay: a lost packet would take half of a fleet away otherwise
// (TestNamesOverTheWire).
//
// # Why the type of a worker is a parameter
//
// This package needs only a worker's URL. With a struct of its own it would copy each key of the configuration there
// and back, and every new key would be three edits. The file's format and the watch on it are the configuration's too,
// so they come as functions.
//
// # What lost
//
// A callback into the pool that then asked for the list: pool and discovery knew each other, and the list could have
// changed in between. Run passes the list itself. The TTL of DNS answers in place of 5 s: net.Resolver does not show
// it.
package discover
