package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/warmpath/warmpath/daemon"
	"github.com/warmpath/warmpath/daemon/admin/registry"
	"github.com/warmpath/warmpath/daemon/admin/strategies"
	"github.com/warmpath/warmpath/daemon/cli/scaffold"
)

func pluginCommand() *cobra.Command {
	c := &cobra.Command{Use: "plugin", Short: "Work on strategy modules", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return fmt.Errorf("plugin: name what to do, as in: warmpath plugin check FILE.wasm")
		}}
	c.AddCommand(pluginNewCommand(), pluginBuildCommand(), pluginTestCommand(), pluginCheckCommand(), pluginRunCommand(),
		pluginPackCommand(), pluginPushCommand(), pluginListCommand(), pluginActivateCommand(), pluginDeactivateCommand())
	return c
}

func pluginNewCommand() *cobra.Command {
	var language, skeleton string
	c := &cobra.Command{
		Use:   "new NAME",
		Short: "Write the project of a strategy: 20 lines, its test, a README",
		Args:  cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			dir, err := scaffold.New(".", args[0], language, skeleton, daemon.Version)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(c.OutOrStdout(), "%[1]s is there; next:\n  warmpath plugin test %[1]s\n"+
				"  warmpath plugin build %[1]s\n  warmpath plugin check %[1]s/%[1]s.wasm\n", dir)
			return err
		},
	}
	c.Flags().StringVar(&language, "lang", scaffold.Languages[0], "its language: "+strings.Join(scaffold.Languages, ", "))
	c.Flags().StringVar(&skeleton, "skeleton", scaffold.Skeletons[0],
		"the strategy that it begins with: cost, which predicts; or bandit, which learns from answers")
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

func pluginPackCommand() *cobra.Command {
	var dir string
	c := &cobra.Command{
		Use:   "pack FILE.wasm -o FOLDER",
		Short: "Write a module as an OCI layout, which oras, skopeo and crane push to a registry",
		Args:  cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			wasm, err := readModule(args[0])
			if err != nil {
				return err
			}
			digest, err := registry.Pack(c.Context(), dir, filepath.Base(args[0]), wasm)
			if err != nil {
				return fmt.Errorf("plugin: %s cannot be packed to %q: %w", args[0], dir, err)
			}
			_, err = fmt.Fprintf(c.OutOrStdout(), "%[1]s has %[2]s; push it, and name it by its digest:\n"+
				"  oras cp --from-oci-layout %[1]s:%[4]s REGISTRY/NAME:TAG\n"+
				"  skopeo copy --preserve-digests oci:%[1]s:%[4]s docker://REGISTRY/NAME:TAG\n"+
				"  crane push %[1]s REGISTRY/NAME:TAG\n"+
				"  path = \"oci://REGISTRY/NAME@%[3]s\"\n", dir, filepath.Base(args[0]), digest, registry.Tag)
			return err
		},
	}
	c.Flags().StringVarP(&dir, "output", "o", "", "the layout's folder")
	_ = c.MarkFlagRequired("output")
	return c
}

// readModule reads a module's file, of at most what a push takes.
func readModule(file string) ([]byte, error) {
	if info, err := os.Stat(file); err == nil && info.Size() > strategies.MaxBytes {
		return nil, fmt.Errorf("plugin: %s has %d bytes, and a push takes %d; build it without debug information "+
			"(-ldflags=\"-s -w\", wasm-strip), or leave out packages", file, info.Size(), strategies.MaxBytes)
	}
	wasm, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("plugin: the module cannot be read; give the path of a .wasm file: %w", err)
	}
	return wasm, nil
}
