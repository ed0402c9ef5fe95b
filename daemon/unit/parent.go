package unit

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// upgradeVar names the process that starts this one in its place. LISTEN_PID cannot: a pid is not known before its
// process runs.
const upgradeVar = "WARMPATH_UPGRADE"

// What a successor tells its parent: one line. The rest of it is a status, or an error.
const (
	readyWord  = "READY "
	failedWord = "FAILED "
)

// parent is the process that started this one to take its place.
type parent struct {
	told *os.File // where it reads
	word *os.File // where it writes that it has let go, and what it hands over; its end means the same
}

// findParent returns nil for a process that nobody started as a successor. It makes the sockets that were handed over
// visible to [activation.Files].
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

// firstFile is the descriptor behind the standard streams.
const firstFile = 3

// ready tells that this process can serve, waits until the parent accepts no more, and returns what it hands over. The
// parent kills who it does not want. If it has ended itself, nobody but us has the sockets.
func (p *parent) ready(status string) []byte {
	defer p.word.Close()
	p.tell(readyWord + status)
	word, _ := bufio.NewReader(p.word).ReadBytes('\n') // its end is a word too
	return bytes.TrimSuffix(word, []byte("\n"))
}

// tell writes the one line.
func (p *parent) tell(line string) {
	line = strings.ReplaceAll(line, "\n", "; ")
	_, _ = fmt.Fprintf(p.told, "%.*s\n", maxLine-1, line) // a parent that has ended needs nothing
	p.told.Close()
}

// maxLine bounds what a parent reads.
const maxLine = 4096
