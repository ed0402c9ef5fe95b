// The module of the kvaware strategy.
package main

import (
	"github.com/warmpath/warmpath/plugins/kvaware"
	"github.com/warmpath/warmpath/sdk"
)

func init() { sdk.Register(kvaware.New()) }

func main() {}
