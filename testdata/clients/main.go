package main

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// limit is for everything after the packages are there; a run takes a quarter of a minute.
const limit = 10 * time.Minute

func main() {
	root := flag.String("root", "../..", "the repository")
	binary := flag.String("warmpath", "", "the program to test (default bin/warmpath of the repository)")
	direct := flag.Bool("direct", false, "ask a worker instead of the router: what fails then is no fault of the "+
		"router's; not for sagemaker and agents, which check what only the router does")
	only := flag.String("only", "", "run only clients whose name holds this, as python or go openai")
	flag.Parse()
	ok, err := run(*root, *binary, *only, *direct)
	if err != nil {
		fmt.Fprintln(os.Stderr, "clients:", err)
	}
	if err != nil || !ok {
		os.Exit(1)
	}
}

// total counts the lines of all clients.
type total struct{ ok, failed, skipped int }

// line prints a line of a client and counts it.
func (t *total) line(s string) {
	switch {
	case strings.HasPrefix(s, "ok "):
		t.ok++
	case strings.HasPrefix(s, "FAIL "):
		t.failed++
	}
	fmt.Println(s)
}

func run(root, binary, only string, direct bool) (bool, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return false, err
	}
	if binary == "" {
		binary = filepath.Join(root, "bin", "warmpath")
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	f, err := open(ctx, root, binary)
	if err != nil {
		return false, err
	}
	defer f.close()
	if *firstTurn > 0 {
		return true, firstTurns(ctx, f)
	}
	if *dying > 0 {
		var t total
		err := dyingChecks(ctx, f, &t)
		return err == nil && t.failed == 0, err
	}
	if direct {
		f.url = f.workers[0]
	}
	var t total
	var endpoints *fleet
	defer func() {
		if endpoints != nil {
			endpoints.close()
		}
	}()
	for _, c := range []struct {
		name string
		run  func(context.Context, *fleet, *total) error
	}{
		{"go http", plainChecks},
		{"go openai", openaiChecks},
		{"python openai", script("python", "openai_checks.py")},
		{"python anthropic", script("python", "anthropic_checks.py")},
		{"node openai", script("node", "openai_checks.mjs")},
		{"node anthropic", script("node", "anthropic_checks.mjs")},
		{"go sagemaker", sagemakerChecks},
		{"python sagemaker", script("python", "sagemaker_checks.py")},
		{"node sagemaker", script("node", "sagemaker_checks.mjs")},
		{"agents", agentChecks},
	} {
		at := f
		aws := strings.HasSuffix(c.name, "sagemaker")
		if !strings.Contains(c.name, only) || direct && (aws || c.name == "agents") {
			continue
		}
		if aws {
			if endpoints == nil {
				endpoints, err = openEndpoints(ctx, root, binary)
				if err != nil {
					return false, err
				}
			}
			at = endpoints
		}
		if err := t.watched(c.name, c.run(ctx, at, &t)); err != nil {
			if inCI() {
				t.failed++
				fmt.Printf("FAIL %s: %v\n", c.name, err)
				continue
			}
			t.skipped++
			fmt.Printf("SKIPPED %s: %v\n", c.name, err)
		}
	}
	fmt.Printf("clients: %d ok, %d failed, %d clients skipped\n", t.ok, t.failed, t.skipped)
	return t.failed == 0 && t.ok+t.skipped > 0, nil
}

// inCI says that nothing may be skipped.
func inCI() bool { return os.Getenv("CI") != "" || os.Getenv("WARMPATH_CI") != "" }

// script runs a file of checks in its language. An error is a client that could not be set up; failed checks are
// counted.
func script(language, file string) func(context.Context, *fleet, *total) error {
	return func(ctx context.Context, h *fleet, t *total) error {
		command, env, err := install(ctx, h.root, language)
		if err != nil {
			return err
		}
		cmd := exec.CommandContext(ctx, command, filepath.Join(h.root, "testdata", "clients", file))
		cmd.Env = append(append(os.Environ(), env...), "WARMPATH_URL="+h.url, "WARMPATH_MODEL="+model,
			"WARMPATH_WORKERS="+strings.Join(h.workers, ","))
		cmd.Env = append(cmd.Env, h.env...)
		cmd.Stderr = os.Stderr
		cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
		cmd.WaitDelay = 5 * time.Second
		out, err := cmd.StdoutPipe()
		if err != nil {
			return err
		}
		if err := cmd.Start(); err != nil {
			return err
		}
		ok, failed := t.ok, t.failed
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			t.line(lines.Text())
		}
		if err := cmd.Wait(); t.failed == failed && (err != nil || t.ok == ok) {
			t.line(fmt.Sprintf("FAIL %s: it ended with %v and no check has said why", file, err))
		}
		return nil
	}
}
