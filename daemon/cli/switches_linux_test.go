package cli

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/porttest"
	"github.com/warmpath/warmpath/testdata/databench/wire"
)

// voluntarySwitches returns how often the threads of a process have given up their processor by themselves.
func voluntarySwitches(t *testing.T, pid int) (sum int64) {
	t.Helper()
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	for _, task := range tasks {
		f, err := os.Open(task)
		if err != nil {
			continue // the thread has ended
		}
		for lines := bufio.NewScanner(f); lines.Scan(); {
			if n, ok := strings.CutPrefix(lines.Text(), "voluntary_ctxt_switches:"); ok {
				count, _ := strconv.ParseInt(strings.TrimSpace(n), 10, 64)
				sum += count
			}
		}
		f.Close()
	}
	return sum
}

// TestSwitches: with 32 busy connections a request costs less than 0.6 voluntary context switches. No goroutine hands
// its request to another, and none waits for a processor after a system call. A load that leaves the daemon idle makes
// more of them, so the best of some rounds counts. The saving by room socket is in databench (cpu/1KB-switches): 0.1 of
// 0.4.
func TestSwitches(t *testing.T) {
	const conns, rounds, most = 32, 12, .6
	worker := wire.Worker{Handle: (*wire.Call).Answer}
	if err := worker.Start("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(worker.Close)
	dir, port := workplace(t), porttest.Row(t, 2)
	write(t, filepath.Join(dir, "a.toml"), fmt.Sprintf("[server]\nlisten = \"127.0.0.1:%d\"\nadmin = \"127.0.0.1:%d\"\n[[pools]]\n"+
		"[[pools.workers]]\nurl = \"http://%s\"\n", port, port+1, worker.Addr()))
	p := warmpath(t, dir, "serve --config a.toml")
	p.says(`msg="worker up"`, 1)
	request := wire.Post("/v1/chat/completions", `{"model":"sim","messages":[{"role":"user","content":"`+
		strings.Repeat("a prompt ", 100)+`"}]}`)
	least := 0.
	for round := range rounds {
		var answered, failed atomic.Int64
		before := voluntarySwitches(t, p.cmd.Process.Pid)
		wire.Closed(context.Background(), fmt.Sprintf("127.0.0.1:%d", port), conns, 300*time.Millisecond,
			func(c *wire.Client, _ int) {
				if a := c.Do(request, false); a.Err == nil && a.Status == 200 {
					answered.Add(1)
				} else {
					failed.Add(1)
				}
			})
		each := float64(voluntarySwitches(t, p.cmd.Process.Pid)-before) / float64(max(1, answered.Load()))
		if failed.Load() > 0 || answered.Load() < conns {
			t.Fatalf("%d requests were answered, %d failed", answered.Load(), failed.Load())
		}
		if round == 0 || each < least {
			least = each
		}
		t.Logf("%d requests, %.2f switches each", answered.Load(), each)
		if least < most {
			return
		}
	}
	t.Errorf("a request costs %.2f voluntary context switches; want %v at most", least, most)
}
