package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// batch is a message of a worker's event stream, as events.py prints it.
type batch struct {
	Worker  string
	Seq     uint64
	Made    float64 // Unix seconds: the engine's own time of it
	Came    float64 // when events.py had it
	Events  []event
	Payload string // hex
}

// event is a change of a worker's cache.
type event struct {
	Kind   string // stored, removed, cleared
	Hashes []string
	Parent *string
	Tokens []uint32
	Size   int // tokens of a block
}

// listener keeps all batches of the workers, in order for each.
type listener struct {
	cmd  *exec.Cmd
	done chan struct{}
	log  string

	mu      sync.Mutex
	batches map[string][]*batch // guarded by mu; by worker
	err     error               // guarded by mu; a line that is none
}

// listen starts events.py on the workers' sockets.
func listen(python, script, dir string, workers []*vllm) (*listener, error) {
	args := []string{script}
	for _, w := range workers {
		args = append(args, w.id+"="+w.events)
	}
	l := &listener{cmd: exec.Command(python, args...), done: make(chan struct{}), log: filepath.Join(dir, "events.log"),
		batches: map[string][]*batch{}}
	log, err := os.Create(l.log)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	l.cmd.Stderr = log
	l.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := l.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := l.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(l.done)
		l.read(out)
		_ = l.cmd.Wait()
	}()
	return l, nil
}

func (l *listener) read(out io.Reader) {
	for lines := bufio.NewReaderSize(out, 1<<20); ; {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		b := &batch{}
		err = json.Unmarshal(line, b)
		l.mu.Lock()
		if err != nil {
			l.err = fmt.Errorf("events.py printed %.80q: %w", line, err)
		} else {
			l.batches[b.Worker] = append(l.batches[b.Worker], b)
		}
		l.mu.Unlock()
	}
}

// of returns a worker's batches so far.
func (l *listener) of(worker string) []*batch {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.batches[worker][:len(l.batches[worker]):len(l.batches[worker])]
}

// alive returns an error if the listener has stopped or lost something.
func (l *listener) alive() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.done:
		return fmt.Errorf("events.py ended: %s", tail(l.log))
	default:
		return l.err
	}
}

// waitBeyond waits until a worker's stream has more than n batches.
func (l *listener) waitBeyond(ctx context.Context, worker string, n int) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	for len(l.of(worker)) <= n {
		if err := l.alive(); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("worker %s published nothing: %w", worker, ctx.Err())
		case <-time.After(5 * time.Millisecond):
		}
	}
	return nil
}

func (l *listener) kill() {
	_ = l.cmd.Process.Kill()
	<-l.done
}
