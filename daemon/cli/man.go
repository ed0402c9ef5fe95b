package cli

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/warmpath/warmpath/daemon"
)

// manCommand writes the manual pages. cobra makes them of the same words as --help.
func manCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "man DIR",
		Short:   "Write the manual pages, one a command, into a folder",
		Example: "  warmpath man /usr/local/share/man/man1",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if info, err := os.Stat(args[0]); err != nil || !info.IsDir() {
				return fmt.Errorf("%s is no folder; make it first", args[0])
			}
			root := c.Root()
			root.DisableAutoGenTag = true // no date: the same binary writes the same pages
			h := doc.GenManHeader{Title: "WARMPATH", Section: "1", Source: "warmpath " + daemon.Version}
			return doc.GenManTree(root, &h, args[0])
		},
	}
}
