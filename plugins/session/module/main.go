// The module of the session strategy.
package main

import (
	"github.com/warmpath/warmpath/plugins/session"
	"github.com/warmpath/warmpath/sdk"
)

func init() { sdk.Register(session.New()) }

func main() {}
