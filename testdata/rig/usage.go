package rig

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// CPU is the time that all threads have run. It is read from schedstat, whose nanoseconds are what utime + stime of
// stat round to 10 ms.
func (p *Proc) CPU() time.Duration {
	var sum time.Duration
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", p.cmd.Process.Pid))
	for _, t := range tasks {
		b, _ := os.ReadFile(t)
		if f := strings.Fields(string(b)); len(f) == 3 {
			ns, _ := strconv.ParseInt(f[0], 10, 64)
			sum += time.Duration(ns)
		}
	}
	return sum
}

// Switches counts how often a thread has given its processor up by itself.
func (p *Proc) Switches() (voluntary int64) {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", p.cmd.Process.Pid))
	for _, t := range tasks {
		b, _ := os.ReadFile(t)
		for line := range strings.Lines(string(b)) {
			if value, ok := strings.CutPrefix(line, "voluntary_ctxt_switches:"); ok {
				n, _ := strconv.ParseInt(strings.TrimSpace(value), 10, 64)
				voluntary += n
			}
		}
	}
	return voluntary
}

// RSS is the resident memory in bytes.
func (p *Proc) RSS() int64 {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/statm", p.cmd.Process.Pid))
	f := strings.Fields(string(b))
	if len(f) < 2 {
		return 0
	}
	pages, _ := strconv.ParseInt(f[1], 10, 64)
	return pages * int64(os.Getpagesize())
}

// FDs is the number of open descriptors.
func (p *Proc) FDs() int {
	d, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", p.cmd.Process.Pid))
	return len(d)
}
