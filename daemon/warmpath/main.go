// Command warmpath routes LLM inference requests to the vLLM worker that already holds their prompt's prefix.
//
// cobra reads the command line: the best kept library for it in Go (Apache-2.0), and the one whose help and completion
// operators know from kubectl.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

// version is set by the linker; see Makefile.
var version = "dev"

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	if err := root().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "warmpath:", err)
		os.Exit(1)
	}
}

func root() *cobra.Command {
	c := &cobra.Command{
		Use:           "warmpath",
		Short:         "A router for vLLM fleets that knows which worker holds which prefix",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	c.AddCommand(serveCommand(), checkCommand(), simCommand(), replayCommand(), demoCommand(), sessionsCommand(), pluginCommand(), versionCommand())
	return c
}

func versionCommand() *cobra.Command {
	return &cobra.Command{Use: "version", Short: "Print the version", Args: cobra.NoArgs,
		Run: func(c *cobra.Command, _ []string) { fmt.Fprintln(c.OutOrStdout(), "warmpath", version) }}
}
