package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/warmpath/warmpath/daemon"
	"github.com/warmpath/warmpath/daemon/lab/commands"
)

// Main runs the command that the process was started with. If the command fails, Main ends the process: with status 2
// for a wrong command line, else with 1.
func Main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	context.AfterFunc(ctx, cancel) // a second signal ends the process at once
	if err := execute(ctx, root(), os.Args[1:]); err != nil {
		fmt.Fprintln(&printable{to: os.Stderr}, "warmpath:", spoken(err))
		if _, wrong := errors.AsType[wrongLine](err); wrong {
			os.Exit(2)
		}
		os.Exit(1)
	}
}

// execute runs the command line.
func execute(ctx context.Context, c *cobra.Command, args []string) error {
	if err := unknownCommand(c, args); err != nil {
		return err
	}
	c.SetArgs(args)
	c.SetOut(&printable{to: c.OutOrStdout()})
	return c.ExecuteContext(ctx)
}

// unknownCommand returns an error for a word that should be a command and is none. cobra answers one below another
// command with that one's help, and no error.
func unknownCommand(root *cobra.Command, args []string) error {
	if len(args) > 0 && strings.HasPrefix(args[0], cobra.ShellCompRequestCmd) {
		return nil // a shell asks for completions
	}
	c, rest, _ := root.Find(args) // its error is that of a word below root, and has three lines
	if c.Name() == "help" {
		c, rest, _ = root.Find(rest)
	}
	at := slices.IndexFunc(rest, func(word string) bool { return !strings.HasPrefix(word, "-") })
	if at < 0 || c.Runnable() || !c.HasSubCommands() {
		return nil
	}
	remedy := "see " + c.CommandPath() + " --help"
	if flag, is := strings.CutPrefix(rest[max(0, at-1)], "--"); is && c.Flag(flag) == nil { // of the commands below
		remedy = "write " + rest[at-1] + " behind the command: " + c.CommandPath() + " COMMAND " + rest[at-1] + " " + rest[at]
	} else if near := c.SuggestionsFor(rest[at]); len(near) > 0 {
		remedy = fmt.Sprintf("did you mean %q?", near[0])
	}
	return wrongLine{fmt.Errorf("unknown command %q for %q; %s", rest[at], c.CommandPath(), remedy)}
}

func root() *cobra.Command {
	c := &cobra.Command{
		Use:           "warmpath",
		Short:         "A router for vLLM fleets that knows which worker holds which prefix",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	addVersionFlag(c)
	c.AddCommand(commands.All(func(err error) error { return wrongLine{err} })...)
	c.AddCommand(serveCommand(), checkCommand(), demoCommand(), cacheCommand(), sessionsCommand(), shadowCommand(),
		whyCommand(), workerCommand(), pluginCommand(), versionCommand(), statusCommand(), topCommand(), reloadCommand(),
		upgradeCommand(), manCommand(),
		drainCommand("drain", "Take a worker out: it gets no new requests, and those it has run to their end",
			http.MethodPost),
		drainCommand("undrain", "Put a worker back that was taken out", http.MethodDelete))
	c.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return wrongLine{fmt.Errorf("%w%s; see %s --help", err, hintOfFlag(c, err), c.CommandPath())}
	})
	c.InitDefaultHelpCmd() // cobra adds both when it runs, which is too late for sayUse
	c.InitDefaultCompletionCmd()
	sayUse(c)
	return c
}

// addVersionFlag prints the version where cobra would print the help. Cobra's own way is a template. With one template
// in the binary the linker keeps every exported method of every type, 12 MB of them, as it cannot know which the text
// calls.
func addVersionFlag(root *cobra.Command) {
	asked := root.Flags().BoolP("version", "v", false, "version for warmpath")
	help := root.HelpFunc()
	root.SetHelpFunc(func(c *cobra.Command, args []string) {
		if !*asked || c.Flags().Changed("help") {
			help(c, args)
			return
		}
		fmt.Fprintf(c.OutOrStdout(), "warmpath %s\n", daemon.Version)
	})
}

// errEmpty is the error for an empty argument, as a shell passes for an unset variable in quotes.
var errEmpty = errors.New("an argument is empty")

// sayUse has the errors about arguments of a command and those below it say how it is written.
func sayUse(c *cobra.Command) {
	c.SuggestionsMinimumDistance = 2 // letters that differ
	if check := c.Args; check != nil {
		c.Args = func(c *cobra.Command, args []string) error {
			err := cmp.Or(check(c, args), c.ValidateRequiredFlags())
			if err == nil && slices.Contains(args, "") {
				err = errEmpty
			} else if err != nil && len(args) > 0 {
				err = fmt.Errorf("%w%s", err, hintOf(c, err, args[0]))
			}
			if err != nil {
				return wrongLine{fmt.Errorf("%w; write: %s", err, c.UseLine())}
			}
			return nil
		}
	}
	for _, below := range c.Commands() {
		sayUse(below)
	}
}

func versionCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{Use: "version", Short: "Print the version", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if asJSON {
				return json.NewEncoder(c.OutOrStdout()).Encode(map[string]string{
					"version":    daemon.Version,
					"go_version": runtime.Version(),
					"os":         runtime.GOOS,
					"arch":       runtime.GOARCH,
				})
			}
			_, err := fmt.Fprintln(c.OutOrStdout(), "warmpath", daemon.Version)
			return err
		}}
	c.Flags().BoolVar(&asJSON, "json", false, "print the version as JSON")
	return c
}
