package cli

import (
	"bufio"
	"context"
	"io"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestDemoHasNoProblem asks what a visitor asks first: status reports no problem of a demo that has just begun.
func TestDemoHasNoProblem(t *testing.T) {
	ctx, stop := context.WithTimeout(t.Context(), 30*time.Second)
	defer stop()
	read, write := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := demo(ctx, write, io.Discard, demoSettings{listen: "127.0.0.1:0", admin: "127.0.0.1:0", workers: 2})
		write.CloseWithError(io.EOF)
		ended <- err
	}()
	admin := ""
	for lines := bufio.NewScanner(read); lines.Scan() && !strings.Contains(lines.Text(), "Ctrl-C"); {
		if m := regexp.MustCompile(`metrics on http://(\S+)/metrics`).FindStringSubmatch(lines.Text()); m != nil {
			admin = m[1]
		}
	}
	go io.Copy(io.Discard, read)
	var status strings.Builder
	c := statusCommand()
	c.SetArgs([]string{"--admin", admin})
	c.SetOut(&status)
	if err := c.ExecuteContext(ctx); err != nil {
		t.Errorf("status: %v", err)
	}
	if strings.Contains(status.String(), "WARNING") || !strings.HasPrefix(status.String(), "ready") {
		t.Errorf("a new demo has a problem:\n%s", &status)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
