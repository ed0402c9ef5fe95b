package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/warmpath/warmpath/daemon"
	"github.com/warmpath/warmpath/daemon/cli/scaffold"
)

func pluginCommand() *cobra.Command {
	c := &cobra.Command{Use: "plugin", Short: "Work on strategy modules", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return fmt.Errorf("plugin: name what to do, as in: warmpath plugin check FILE.wasm")
		}}
	c.AddCommand(pluginNewCommand(), pluginBuildCommand(), pluginTestCommand(), pluginCheckCommand(), pluginRunCommand(),
		pluginPushCommand(), pluginListCommand(), pluginActivateCommand(), pluginDeactivateCommand())
	return c
}

func pluginNewCommand() *cobra.Command {
	var language string
	c := &cobra.Command{
		Use:   "new NAME",
		Short: "Write the project of a strategy: 20 lines, its test, a README",
		Args:  cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			dir, err := scaffold.New(".", args[0], language, daemon.Version)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(c.OutOrStdout(), "%[1]s is there; next:\n  warmpath plugin test %[1]s\n"+
				"  warmpath plugin build %[1]s\n  warmpath plugin check %[1]s/%[1]s.wasm\n", dir)
			return err
		},
	}
	c.Flags().StringVar(&language, "lang", scaffold.Languages[0], "its language: "+strings.Join(scaffold.Languages, ", "))
	return c
}

func pluginBuildCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "build [FOLDER]",
		Short: "Build the module of a strategy's project",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			wasm, err := scaffold.Build(c.Context(), folder(args), c.ErrOrStderr())
			if err == nil {
				_, err = fmt.Fprintln(c.OutOrStdout(), wasm)
			}
			return err
		},
	}
}

func pluginTestCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "test [FOLDER]",
		Short: "Run the native test of a strategy's project",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return scaffold.Test(c.Context(), folder(args), c.OutOrStdout())
		},
	}
}

// folder returns the project folder in the arguments, by default the present one.
func folder(args []string) string {
	if len(args) == 0 {
		return "."
	}
	return args[0]
}
