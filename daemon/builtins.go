package daemon

import (
	"github.com/warmpath/warmpath/conf"
	"github.com/warmpath/warmpath/plugins"
)

// A file names the built-in strategies, and conf, which checks it, imports nothing of ours.
func init() { conf.Builtins = plugins.Names() }
