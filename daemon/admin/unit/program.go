package unit

import (
	"os"
	"os/exec"
	"path/filepath"
)

// program returns the absolute path by which this process was started. It is the word of the command line if that leads
// to this process's file: so a link that is later set to another release is followed. os.Executable resolves links at
// the start.
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

// Command returns how a shell finds this process's binary: its name if PATH leads there, else its path.
func Command() string {
	path := program()
	name := filepath.Base(path)
	if found, err := exec.LookPath(name); err == nil && found == path {
		return name
	}
	return path
}
