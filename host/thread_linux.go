package host

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// threadID returns the thread that the caller runs on.
func threadID() int { return syscall.Gettid() }

// threadTime returns what a thread of ours has used of a processor since it was made.
func threadTime(id int) (time.Duration, bool) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/self/task/%d/schedstat", id))
	if err != nil {
		return 0, false
	}
	first, _, _ := strings.Cut(string(b), " ")
	ns, err := strconv.ParseInt(first, 10, 64)
	return time.Duration(ns), err == nil
}
