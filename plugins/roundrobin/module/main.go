// The module of the roundrobin strategy.
package main

import (
	"github.com/warmpath/warmpath/plugins/roundrobin"
	"github.com/warmpath/warmpath/sdk"
)

func init() { sdk.Register(roundrobin.New()) }

func main() {}
