//go:build !unix

package listen

// OpenFiles is not known on this system.
func OpenFiles() (limit int, ok bool) { return 0, false }
