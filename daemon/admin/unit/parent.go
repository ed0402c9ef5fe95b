package unit

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// upgradeVar names the process that starts this one as its successor. LISTEN_PID cannot: the pid is unknown before the
// process runs.
const upgradeVar = "WARMPATH_UPGRADE"

// The message of a successor to its parent: one line. Its rest is a status, or an error.
const (
	readyWord  = "READY "
	failedWord = "FAILED "
)

// parent is the process that started this one as its successor.
type parent struct {
	told *os.File // where the parent reads
	word *os.File // where the parent writes that it has stopped, and what it hands over; its end means the same
}

// findParent returns nil for a process that is not a successor. It makes the sockets that were handed over visible to
// [activation.Files].
func findParent() *parent {
	defer os.Unsetenv(upgradeVar)
	pid, err := strconv.Atoi(os.Getenv(upgradeVar))
	sockets, ferr := strconv.Atoi(os.Getenv("LISTEN_FDS"))
	if err != nil || ferr != nil || pid != os.Getppid() {
		return nil
	}
	os.Setenv("LISTEN_PID", strconv.Itoa(os.Getpid()))
	next := uintptr(firstFile + sockets)
	p := &parent{told: os.NewFile(next, "upgrade told"), word: os.NewFile(next+1, "upgrade word")}
	closeOnExec(p.told, p.word)
	return p
}

// firstFile is the first descriptor after the standard streams.
const firstFile = 3

// ready sends that this process can serve, waits until the parent has stopped accepting, and returns what it hands
// over. A parent kills a successor that it rejects. If the parent has ended, only this process has the sockets.
func (p *parent) ready(status string) []byte {
	defer p.word.Close()
	p.report(readyWord + status)
	word, _ := bufio.NewReader(p.word).ReadBytes('\n') // an end of the pipe counts as well
	return bytes.TrimSuffix(word, []byte("\n"))
}

// report writes the one line to the parent.
func (p *parent) report(line string) {
	line = strings.ReplaceAll(line, "\n", "; ")
	_, _ = fmt.Fprintf(p.told, "%.*s\n", maxLine-1, line) // a parent that has ended needs no message
	p.told.Close()
}

// maxLine bounds what a parent reads.
const maxLine = 4096
