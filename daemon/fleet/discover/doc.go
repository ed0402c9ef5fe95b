// Package discover makes one list of workers of a pool's sources: those that the configuration names itself, those of
// workers_file, those that registered themselves, one for each address that the name of workers_dns has, and one for
// each pod of a Kubernetes service, which package endpoints follows.
//
// # Rules
//
//   - The list has one worker a URL. The configuration's own description of a worker goes before that of the file,
//     that before its registration, that before the name's, and that before that of Kubernetes.
//   - The last answer of a source holds until its next. A file that is wrong or away, or a name server that fails or
//     knows no address, takes no worker away: health checks show which ones are really gone.
//   - The router asks for a name every 5 s, give or take a tenth. It sorts the addresses, as servers give them in any
//     order. It reads a file when the file changes.
//   - A name with as many IPv4 as IPv6 addresses is that of workers with both: each is one worker, at its IPv4
//     address (family.go).
//
// why.md has the reasons and the details, and what lost.
package discover
