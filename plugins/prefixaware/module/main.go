// The module of the prefixaware strategy.
package main

import (
	"github.com/warmpath/warmpath/plugins/prefixaware"
	"github.com/warmpath/warmpath/sdk"
)

func init() { sdk.Register(prefixaware.New()) }

func main() {}
