// Package setup reads what a simulated run is made of: a scenario of the lab, and the model whose engines it runs.
//
// Both are TOML. A scenario names a model and may change any number of it under [engine]. Those that come with the lab
// are in scenarios and models, and each number there has its source next to it. An unknown key is an error, as it is in
// the daemon's own file.
//
// # The columns
//
// A to X, conv, conv+cpu, syn and syn+cpu are the columns by which the rules were chosen: see the comments in their
// files for what was chosen here where no measurement decides.
//
// # Why TOML here too
//
// The daemon's file is conf's, which knows nothing of the lab. github.com/BurntSushi/toml (MIT) decodes over a filled
// struct, which is what a scenario over a model needs, and is in the binary already.
package setup
