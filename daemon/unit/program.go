package unit

import (
	"os"
	"os/exec"
	"path/filepath"
)

// program is the path by which this process was started, absolute. It is the word of the command line where that is
// this process's file: a link that is turned to another release is followed. os.Executable follows links at the start.
func program() string {
	self, err := os.Executable()
	if err != nil {
		self = os.Args[0]
	}
	path, err := exec.LookPath(os.Args[0])
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err != nil {
		return self
	}
	is, err := os.Stat(path)
	running, rerr := os.Stat(self)
	if err != nil || rerr != nil || !os.SameFile(is, running) {
		return self
	}
	return path
}
