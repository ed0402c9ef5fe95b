package rig

import "syscall"

// dieWithParent has a process killed when this one ends, however it ends.
func dieWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
