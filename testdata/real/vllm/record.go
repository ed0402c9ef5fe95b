package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// record writes the bytes that a worker sends, heads and chunks included, while it drains and when its engine dies: one
// folder each, one file a request.
func record(ctx context.Context, s *scene, folder string) error {
	for _, r := range []struct {
		name string
		end  func(context.Context, *vllm, string) error
	}{
		{"drain", recordDrain},
		{"crash", recordCrash},
	} {
		dir := filepath.Join(folder, r.name)
		if err := os.MkdirAll(dir, 0o777); err != nil {
			return err
		}
		if err := s.start(0); err != nil {
			return err
		}
		w := s.workers[0]
		if _, err := w.ready(ctx); err != nil {
			return err
		}
		err := r.end(ctx, w, dir)
		w.kill()
		if err != nil {
			return fmt.Errorf("%s: %w", r.name, err)
		}
		fmt.Println("recorded", dir)
	}
	return nil
}

// recordDrain sends one request of each kind to a worker that drains, and those for its state.
func recordDrain(ctx context.Context, w *vllm, dir string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	direct := &scene{router: &router{client: w.client}}
	streams := direct.long(ctx, 2, direct.pace(ctx, 8*time.Second))
	if err := waitRequests(ctx, w, 2); err != nil {
		return err
	}
	if err := w.term(); err != nil {
		return err
	}
	time.Sleep(500 * time.Millisecond)
	for i, k := range kinds {
		if err := save(w, dir, names[i], "POST", k.path, k.body("ferry", 8)); err != nil {
			return err
		}
	}
	for _, path := range []string{"/health", "/ping", "/v1/models", "/load"} {
		if err := save(w, dir, strings.ReplaceAll(path[1:], "/", "-"), "GET", path, nil); err != nil {
			return err
		}
	}
	for _, a := range streams() {
		if err := a.fault(); err != nil {
			return fmt.Errorf("a stream that ran: %w", err)
		}
	}
	return nil
}

// recordCrash opens one long request of each kind, then ends the worker's engine.
func recordCrash(ctx context.Context, w *vllm, dir string) error {
	errs := make([]error, len(kinds)-1) // all but tokenize
	var wg sync.WaitGroup
	for i, k := range kinds[:len(errs)] {
		wg.Go(func() { errs[i] = save(w, dir, names[i], "POST", k.path, k.body("ferry", 4000)) })
	}
	err := waitRequests(ctx, w, float64(len(errs)))
	if err == nil {
		err = killEngine(w)
	}
	if err != nil {
		w.kill() // and with it the requests
	}
	wg.Wait()
	return errors.Join(append(errs, err)...)
}

func waitRequests(ctx context.Context, w *vllm, want float64) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for {
		n, err := w.running(ctx)
		if err == nil && n >= want {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("%v of %v requests run (%v)", n, want, err)
		}
	}
}

// save sends a request on a connection of its own and writes what comes back until it ends. Another end than an orderly
// close is printed.
func save(w *vllm, dir, name, method, path string, body any) error {
	text := []byte{}
	if body != nil {
		var err error
		text, err = json.Marshal(body)
		if err != nil {
			return err
		}
	}
	conn, err := net.Dial("tcp", strings.TrimPrefix(w.url, "http://"))
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(40 * time.Second)); err != nil {
		return err
	}
	_, err = fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: worker\r\nContent-Type: application/json\r\nContent-Length: "+
		"%d\r\nConnection: close\r\n\r\n%s",
		method, path, len(text), text)
	if err != nil {
		return err
	}
	got, err := io.ReadAll(conn)
	if err != nil {
		fmt.Printf("%s %s ended with: %v\n", dir, name, err)
	}
	return os.WriteFile(filepath.Join(dir, name+".http"), got, 0o666)
}

// killEngine ends the API server's child that computes, and no other.
func killEngine(w *vllm) error {
	pid := w.cmd.Process.Pid
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	if err != nil {
		return err
	}
	for field := range strings.FieldsSeq(string(children)) {
		line, err := os.ReadFile("/proc/" + field + "/cmdline")
		if err != nil || !strings.Contains(string(line), "EngineCore") {
			continue
		}
		child, err := strconv.Atoi(field)
		if err != nil {
			return err
		}
		return syscall.Kill(child, syscall.SIGKILL)
	}
	return fmt.Errorf("none of the processes %s is the engine", children)
}
