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
// why.md has the reasons and the details, and what lost.
package conf
