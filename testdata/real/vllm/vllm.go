package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// startLimit is how long a worker may take to serve: 70 s alone on two free cores, 100 s beside another, 11 minutes
// where a load of 20 keeps the cores busy.
const startLimit = 30 * time.Minute

// vllm is one real worker: an API server with its engine, in a process group of their own.
type vllm struct {
	id, url string
	client  *client
	events  string // ZMQ address of its KV events; "" = it publishes none
	replay  string // and of their replay
	log     string // file
	started time.Time
	cmd     *exec.Cmd
	done    chan struct{} // closed when the API server has ended
}

// setup is what workers are started from.
type setup struct {
	python, model, dir string
	drain              time.Duration // of --shutdown-timeout
	blocks, length     int           // of 32 tokens; the longest request in tokens
	events             bool          // publish KV events
	transfer           string        // of --kv-transfer-config; "" = none
	env                []string      // more of it
}

// sessions is the folder in which a worker keeps a folder for each session.
func (s setup) sessions(id string) string { return filepath.Join(s.dir, id+"-sessions") }

// start starts a worker on a loopback port. Loopback needs VLLM_HOST_IP too: the engine binds a port of its own
// there. nobind: by default vLLM keeps a core free and pins its threads to the others, on two cores both workers' to
// the same one.
func (s setup) start(id string, port int) (*vllm, error) {
	addr := strconv.Itoa(port)
	w := &vllm{id: id, url: "http://127.0.0.1:" + addr, started: time.Now(), done: make(chan struct{}),
		log: filepath.Join(s.dir, fmt.Sprintf("%s-%d.log", id, time.Now().Unix()))}
	w.client = newClient(w.url)
	log, err := os.Create(w.log)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	args := []string{"-m", "vllm.entrypoints.openai.api_server",
		"--model", s.model, "--served-model-name", "tiny", "--host", "127.0.0.1", "--port", addr,
		"--enforce-eager", "--block-size", "32", "--num-gpu-blocks-override", strconv.Itoa(s.blocks),
		"--max-model-len", strconv.Itoa(s.length),
		"--enable-prompt-tokens-details", "--shutdown-timeout", strconv.Itoa(int(s.drain.Seconds()))}
	if s.events {
		w.events = "ipc://" + filepath.Join(s.dir, id+".sock")
		replay, err := freePorts(1)
		if err != nil {
			return nil, err
		}
		w.replay = fmt.Sprintf("tcp://127.0.0.1:%d", replay[0])
		args = append(args, "--kv-events-config", fmt.Sprintf(`{"enable_kv_cache_events":true,"publisher":"zmq",`+
			`"endpoint":%q,"replay_endpoint":%q,"topic":"kv@%s@tiny"}`, w.events, w.replay, id))
	}
	if s.transfer != "" {
		args = append(args, "--kv-transfer-config", s.transfer)
	}
	w.cmd = exec.Command(s.python, args...)
	w.cmd.Env = append(os.Environ(), "VLLM_CPU_KVCACHE_SPACE=1", "OMP_NUM_THREADS=1", "VLLM_CPU_OMP_THREADS_BIND=nobind",
		"HF_HUB_OFFLINE=1", "VLLM_NO_USAGE_STATS=1",
		"VLLM_HOST_IP=127.0.0.1", "VLLM_ENABLE_RESPONSES_API_STORE=1", "TMPDIR="+s.dir,
		"SAGEMAKER_ENABLE_STATEFUL_SESSIONS=true", "SAGEMAKER_SESSIONS_PATH="+
			s.sessions(id)) // else both would share /dev/shm's
	w.cmd.Env = append(w.cmd.Env, s.env...)
	if s.events {
		w.cmd.Env = append(w.cmd.Env, "VLLM_SERVER_DEV_MODE=1") // for /reset_prefix_cache
	}
	w.cmd.Stdout, w.cmd.Stderr = log, log
	w.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := w.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = w.cmd.Wait()
		close(w.done)
	}()
	return w, nil
}

// ready waits until /health is 200 and returns when it first was.
func (w *vllm) ready(ctx context.Context) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	for {
		if a := w.client.send(ctx, "GET", "/health", nil, nil); a.err == nil && a.status == http.StatusOK {
			return time.Now(), nil
		}
		select {
		case <-w.done:
			return time.Time{}, fmt.Errorf("worker %s ended at its start; its log ends with:\n%s", w.id, tail(w.log))
		case <-ctx.Done():
			return time.Time{}, fmt.Errorf("worker %s did not serve in %v; its log ends with:\n%s", w.id, startLimit,
				tail(w.log))
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func tail(file string) string {
	b, err := os.ReadFile(file)
	if err != nil {
		return err.Error()
	}
	return string(b[max(0, len(b)-2000):])
}

// running is what the engine says of requests that it runs or that wait in it.
func (w *vllm) running(ctx context.Context) (float64, error) {
	return w.client.sum(ctx, "vllm:num_requests_running{", "vllm:num_requests_waiting{")
}

// sum adds up the samples on a page of metrics that begin with one of these.
func (c *client) sum(ctx context.Context, of ...string) (float64, error) {
	a := c.send(ctx, "GET", "/metrics", nil, nil)
	if err := a.fault(); err != nil {
		return 0, err
	}
	var sum float64
	for s := bufio.NewScanner(strings.NewReader(string(a.body))); s.Scan(); {
		name, value, _ := strings.Cut(s.Text(), "} ")
		if slices.ContainsFunc(of, func(start string) bool { return strings.HasPrefix(name, start) }) {
			f, err := strconv.ParseFloat(value, 64)
			if err != nil {
				return 0, fmt.Errorf("metric %q: %w", s.Text(), err)
			}
			sum += f
		}
	}
	return sum, nil
}

// term asks the API server to drain and end, as an orchestrator does.
func (w *vllm) term() error { return w.cmd.Process.Signal(syscall.SIGTERM) }

// kill ends the API server, its engine and all that they started, at once. Killing the server alone would leave the
// engine behind, with its memory and ports. Shared memory outlives them, as nobody is left to unlink it: up to 400 MB
// a worker.
func (w *vllm) kill() {
	shared := sharedMemory(w.cmd.Process.Pid)
	_ = syscall.Kill(-w.cmd.Process.Pid, syscall.SIGKILL) // the group's id is the server's
	<-w.done
	for _, file := range shared {
		_ = os.Remove(file)
	}
}

// sharedMemory lists the files under /dev/shm that the processes of a group have mapped.
func sharedMemory(group int) (files []string) {
	maps, _ := filepath.Glob("/proc/[0-9]*/maps")
	for _, m := range maps {
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(m)))
		if g, err := syscall.Getpgid(pid); err != nil || g != group {
			continue
		}
		text, _ := os.ReadFile(m)
		for field := range strings.FieldsSeq(string(text)) {
			if strings.HasPrefix(field, "/dev/shm/") && !slices.Contains(files, field) {
				files = append(files, field)
			}
		}
	}
	return files
}

// gone says whether nothing is left of the worker's process group.
func (w *vllm) gone() bool { return errors.Is(syscall.Kill(-w.cmd.Process.Pid, 0), syscall.ESRCH) }

// freePorts finds n loopback ports that nobody listens on.
func freePorts(n int) ([]int, error) {
	var ports []int
	var open []io.Closer
	defer func() {
		for _, l := range open {
			l.Close()
		}
	}()
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		open = append(open, l)
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}
