package cli

import (
	"strings"

	"github.com/spf13/cobra"
)

// hintOf returns the flag with which to write an argument that a command does not take: --config for a file, or
// --admin for an address. For a command without such a flag, or for another error, it returns "".
func hintOf(c *cobra.Command, err error, word string) string {
	if !strings.HasPrefix(err.Error(), "unknown command ") {
		return ""
	}
	for _, flag := range []string{"config", "admin"} {
		if c.Flags().Lookup(flag) != nil {
			return "; did you mean --" + flag + " " + word + "?"
		}
	}
	return ""
}

// hintOfFlag returns the flag that takes the file, for an unknown flag that tried to pass the file's contents.
func hintOfFlag(c *cobra.Command, err error) string {
	if _, given, short := strings.Cut(err.Error(), " in -"); short { // as in serve -config FILE
		if c.Flags().Lookup(given) != nil {
			return "; did you mean --" + given + "?"
		}
		return ""
	}
	word := strings.TrimPrefix(err.Error(), "unknown flag: --")
	if c.Flags().Lookup(word+"-file") == nil {
		return ""
	}
	return "; did you mean --" + word + "-file?"
}
