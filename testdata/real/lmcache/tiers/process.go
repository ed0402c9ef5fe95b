package main

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// run starts a process and waits until it listens at an address, or answers 200 at a URL.
func (r *processes) run(name, at, program string, args ...string) error {
	log, err := os.Create(filepath.Join(r.dir, name+".log"))
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(program, args...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Env = append(os.Environ(), "PYTHONHASHSEED=0", "VLLM_CPU_KVCACHE_SPACE=1", "OMP_NUM_THREADS=1",
		"VLLM_CPU_OMP_THREADS_BIND=nobind", "HF_HUB_OFFLINE=1", "VLLM_NO_USAGE_STATS=1", "LMCACHE_TRACK_USAGE=false",
		"VLLM_HOST_IP=127.0.0.1", "TMPDIR="+r.dir)
	if err := cmd.Start(); err != nil {
		return err
	}
	r.running = append(r.running, cmd)
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for end := time.Now().Add(startLimit); time.Now().Before(end); {
		if answers(at) {
			return nil
		}
		select {
		case err := <-ended:
			return fmt.Errorf("%s ended while it started, %v: see %s", name, err, log.Name())
		case <-time.After(200 * time.Millisecond):
		}
	}
	return fmt.Errorf("%s does not serve at %s within %s: see %s", name, at, startLimit, log.Name())
}

func answers(at string) bool {
	if !strings.HasPrefix(at, "http") {
		c, err := net.Dial("tcp", at)
		if err == nil {
			c.Close()
		}
		return err == nil
	}
	a, err := http.Get(at)
	if err != nil {
		return false
	}
	a.Body.Close()
	return a.StatusCode == http.StatusOK
}

// stop ends the processes, the last first, with the groups that they have made.
func (r *processes) stop() {
	for i := len(r.running) - 1; i >= 0; i-- {
		pid := r.running[i].Process.Pid
		_ = syscall.Kill(-pid, syscall.SIGTERM)
		for end := time.Now().Add(15 * time.Second); time.Now().Before(end) && syscall.Kill(-pid, 0) == nil; {
			time.Sleep(50 * time.Millisecond)
		}
		_ = syscall.Kill(-pid, syscall.SIGKILL)
	}
}
