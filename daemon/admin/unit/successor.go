package unit

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// successor is a process that was started to replace this one.
type successor struct {
	path string
	cmd  *exec.Cmd
	told *os.File      // its message
	word *os.File      // written when it may accept, with the data that is handed over
	done chan struct{} // closed when it has ended
}

// start runs the file at path with this process's arguments, folder and environment, and the gates' sockets.
func start(path string, sockets *gates) (s *successor, err error) {
	files, names, err := sockets.files()
	if err != nil {
		return nil, err
	}
	defer func() { closeAll(files) }()
	listeners := len(files)
	told, theirs, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	files = append(files, theirs)
	word, ours, err := os.Pipe()
	if err != nil {
		told.Close()
		return nil, err
	}
	files = append(files, word)
	s = &successor{path: path, cmd: exec.Command(path, os.Args[1:]...), told: told, word: ours, done: make(chan struct{})}
	s.cmd.Stdin, s.cmd.Stdout, s.cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	s.cmd.ExtraFiles = files
	s.cmd.Env = append(environment(), upgradeVar+"="+strconv.Itoa(os.Getpid()), "LISTEN_FDS="+strconv.Itoa(listeners),
		"LISTEN_FDNAMES="+strings.Join(names, ":"))
	if err := s.cmd.Start(); err != nil {
		s.told.Close()
		s.word.Close()
		return nil, fmt.Errorf("%s cannot be started: %w; put a warmpath for this machine there, executable for this user",
			path, err)
	}
	go func() {
		_ = s.cmd.Wait() // its result is in ProcessState
		close(s.done)
	}()
	return s, nil
}

// environment returns this process's environment without the variables of its own sockets.
func environment() []string {
	var env []string
	for _, e := range os.Environ() {
		switch name, _, _ := strings.Cut(e, "="); name {
		case "LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES", "LISTEN_PIDFDID", upgradeVar:
		default:
			env = append(env, e)
		}
	}
	return env
}

// await waits until the successor can serve, and returns its status. On an error, which has the reason, it has ended.
func (s *successor) await(wait time.Duration) (status string, err error) {
	defer s.told.Close()
	if err := s.told.SetReadDeadline(time.Now().Add(wait)); err != nil {
		return "", s.end(err)
	}
	line, err := bufio.NewReader(io.LimitReader(s.told, maxLine)).ReadString('\n')
	line = strings.TrimSuffix(line, "\n")
	if status, ok := strings.CutPrefix(line, readyWord); ok && err == nil {
		return status, nil
	}
	if why, ok := strings.CutPrefix(line, failedWord); ok {
		return "", s.end(fmt.Errorf("%s was started and failed: %s", s.path, why))
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return "", s.end(fmt.Errorf("%s was started and did not serve within %v: look at its lines in the log, or give it "+
			"more time with warmpath upgrade --timeout", s.path, wait))
	}
	select {
	case <-s.done:
		return "", s.end(fmt.Errorf("%s was started and ended (%v) before it served: look at its lines in the log; is the "+
			"file a warmpath that knows upgrades?", s.path, s.cmd.ProcessState))
	case <-time.After(endTime):
		return "", s.end(fmt.Errorf("%s was started and did not say that it serves: is it a warmpath that knows upgrades?",
			s.path))
	}
}

// endTime is for a process that is about to end.
const endTime = 2 * time.Second

// end waits for the process to end, or kills it, and returns err. It closes word last: that would let the process
// accept.
func (s *successor) end(err error) error {
	defer s.word.Close()
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		select {
		case <-s.done:
		case <-time.After(endTime):
		}
	}
	s.kill()
	<-s.done
	return err
}

// kill ends the process at once. There may be none, and it may have ended.
func (s *successor) kill() {
	if s != nil {
		_ = s.cmd.Process.Kill()
	}
}

// release lets the successor accept, and hands it one line.
func (s *successor) release(line []byte) error {
	defer s.word.Close()
	if err := s.word.SetWriteDeadline(time.Now().Add(endTime)); err != nil {
		return err
	}
	_, err := s.word.Write(append(line, '\n'))
	return err
}
