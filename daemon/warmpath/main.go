// Command warmpath routes LLM inference requests to the vLLM worker that already holds their prompt's prefix. Package
// cli has its commands.
package main

import "github.com/warmpath/warmpath/daemon/cli"

func main() { cli.Main() }
