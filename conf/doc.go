// Package conf reads warmpath's TOML file: defaults, then the file, then checks that tell everything wrong at once.
//
// # What it promises
//
// A [Config] that Load returned is complete and immutable: every default is filled in, every path is resolved against the
// file's folder, every worker has an id, every pool a name. Runtime state never hangs on it, so that a reload is: load,
// build anew, swap one pointer; on any error the old one stays.
//
// A file that is wrong is refused with a [Problems]: each carries file, line, key, what is wrong and the remedy. An
// unknown key is an error, not a warning: a misspelt drain_timeout that silently keeps its default is found at the worst
// hour. The nearest known key is offered.
//
// # Why a locator of our own
//
// The TOML library knows where a syntax error stands, but not where a key does: its key table is by name, so the second
// [[pools.workers]] shadows the first, and it does not export positions. Decoding through toml.Primitive keeps no lines
// either. locate.go walks a document which the library has already accepted and notes the line of each key by its indexed
// path (pools[1].workers[0].url); a fuzz test holds its paths equal to the library's tree. An error in the third worker
// points at the third worker.
//
// # Why polling
//
// [Watch] hashes contents on a timer. inotify loses the file at rename-over, sees a Kubernetes ConfigMap only as a swap of
// the ..data link two folders up, and does not work on NFS; a hash of a few megabytes each two seconds costs a
// millisecond and has one rule for all of them. Size and mtime alone miss a second write within the clock's grain.
//
// # Why one file of defaults
//
// warmpath.toml is the manual, what `warmpath check --defaults` prints, and a file that serves. A test holds each of its
// values equal to [Default] and [DefaultPool] and each known key present, so that none of the three can drift.
package conf
