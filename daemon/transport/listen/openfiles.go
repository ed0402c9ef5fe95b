package listen

import "golang.org/x/sys/unix"

// OpenFiles returns how many descriptors this process may have. Package os has raised the soft limit to the hard one
// before main began. ok is false if the system does not know.
func OpenFiles() (limit int, ok bool) {
	var r unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &r) != nil {
		return 0, false
	}
	return int(min(uint64(r.Cur), 1<<30)), true // "unlimited" is the largest number there is
}
