package conf

import _ "embed"

//go:embed warmpath.toml
var defaultsTOML string

// DefaultsTOML is warmpath.toml: every key with its default, and comments. It parses to the defaults and one worker.
func DefaultsTOML() string { return defaultsTOML }
