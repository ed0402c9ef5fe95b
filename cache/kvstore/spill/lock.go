package spill

import (
	"errors"
	"os"
	"syscall"
)

// lockFolder keeps other daemons out until the file is closed.
func lockFolder(f *os.File) error {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return ErrHeld
	}
	return err
}
