// Package conf reads warmpath's TOML file: defaults, then the file, then checks that report everything
// wrong at once.
//
// # What it promises
//
// A [Config] that Load returned is complete and immutable: every default is filled in, every path is resolved against
// the file's folder, every worker has an id, every pool a name. Runtime state never hangs on it, so that a reload is:
// load, build, swap one pointer; on any error the old one stays.
//
// A file that is wrong is refused with a [Problems]: each carries file, line, key, what is wrong and the remedy. An
// unknown key is an error, not a warning: a misspelt drain_timeout that silently keeps its default would be noticed too
// late. The message offers the nearest known key.
//
// # Why a locator of our own
//
// The TOML library gives the line of a syntax error, but not that of a key: its key table is by name, so the second
// [[pools.workers]] shadows the first, and it does not export positions. Decoding through toml.Primitive keeps no lines
// either. locate.go walks a document which the library has already accepted and notes the line of each key by its
// indexed path (pools[1].workers[0].url); a fuzz test holds its paths equal to the library's tree. An error in the
// third worker points at the third worker.
//
// # Why secrets are not in the file, nor in Config
//
// A configuration is pasted into issues and kept in git; so [Key] names a file or a variable, and [Key.Secret] reads it
// when the process asks, so that a reload reads a new one and no %+v of a Config shows any. Load reads each once to
// refuse what could never work: empty, a line break within, two names for one key. Errors show the place and the
// length, never the text. What a user wrote where a name belongs may be the key itself, and is not shown either.
//
// # Why files are opened by Load
//
// A certificate that does not fit its key, a CA file without a certificate, a workers_file with a misspelt key: found
// at load, each is a line of `warmpath check` and a reload that is refused while the old state serves. Found later,
// each is a stream of failed handshakes. Between Load and use a file may change: the package that reads it then reports
// its own error.
//
// # Why a tag for what needs a restart
//
// Most keys take effect at a reload. A field that does not has the tag reload:"restart", and [NeedRestart] reads that
// by reflection. A list of comparisons kept beside the daemon's reload lost: a new key is forgotten there.
//
// # Why polling
//
// [Watch] hashes contents on a timer. inotify loses the file at rename-over, sees a Kubernetes ConfigMap only as a swap
// of the ..data link two folders up, and does not work on NFS; a hash of a few megabytes each two seconds costs a
// millisecond and is one rule for all of them. Size and mtime alone miss a second write within the clock's resolution.
//
// # Why one file of defaults
//
// warmpath.toml is the manual, what `warmpath check --defaults` prints, and a file that serves. A test holds each of
// its values equal to [Default] and [DefaultPool] and each known key present, so that none of the three can drift. A
// table that does something by being there ([[keys]]) is a comment, and the test takes the marks off.
package conf
