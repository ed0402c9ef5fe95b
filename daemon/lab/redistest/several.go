package redistest

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/porttest"
)

// startAt starts a server at a port too: Sentinels and clusters cannot use sockets.
func startAt(t testing.TB, args ...string) (s *Server, port string) {
	t.Helper()
	addr := porttest.Address(t)
	_, port, _ = net.SplitHostPort(addr)
	s = Start(t, append([]string{"--bind", "127.0.0.1", "--port", port, "--appendonly", "no"}, args...)...)
	s.Addr = addr
	return s, port
}

// until waits for a reply to a command that has some text in it.
func (s *Server) until(command, text string) {
	s.t.Helper()
	for end := time.Now().Add(patience); !strings.Contains(s.whole(command), text); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			s.t.Fatalf("%s has no %q within %v", command, text, patience)
		}
	}
}

// whole returns the reply to a command, as redis-cli prints it.
func (s *Server) whole(command string) string {
	out, _ := exec.Command("redis-cli", append([]string{"-s", s.Socket()}, strings.Fields(command)...)...).Output()
	return string(out)
}

// Cluster starts a cluster of three primaries, and returns its URL.
func Cluster(t testing.TB) (url string, nodes []*Server) {
	t.Helper()
	create, ports := []string{"--cluster", "create"}, []string{}
	for range 3 {
		n, port := startAt(t, "--cluster-enabled", "yes", "--cluster-node-timeout", "2000",
			"--cluster-port", strconv.Itoa(porttest.Row(t, 1)))
		nodes, ports = append(nodes, n), append(ports, port)
		create = append(create, "127.0.0.1:"+port)
	}
	if out, err := exec.Command("redis-cli", append(create, "--cluster-yes")...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, n := range nodes {
		n.until("CLUSTER INFO", "cluster_state:ok")
	}
	return fmt.Sprintf("redis://127.0.0.1:%s?cluster=true&addr=127.0.0.1:%s", ports[0], ports[1]), nodes
}

// Sentinels starts a Sentinel with a primary and a replica, and returns its URL. It fails over after half a second.
func Sentinels(t testing.TB) (url string, primary, replica *Server) {
	t.Helper()
	primary, port := startAt(t)
	replica, _ = startAt(t, "--replicaof", "127.0.0.1 "+port)
	replica.until("INFO replication", "master_link_status:up")
	_, at, _ := net.SplitHostPort(porttest.Address(t))
	file := filepath.Join(t.TempDir(), "sentinel.conf")
	text := fmt.Sprintf("port %s\nbind 127.0.0.1\nsentinel monitor m 127.0.0.1 %s 1\n"+
		"sentinel down-after-milliseconds m 500\nsentinel failover-timeout m 5000\n", at, port)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("redis-server", file, "--sentinel")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	for end := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		out, _ := exec.Command("redis-cli", "-p", at, "SENTINEL", "REPLICAS", "m").Output()
		if strings.Contains(string(out), "127.0.0.1") {
			return "redis://127.0.0.1:" + at + "/0?master_name=m", primary, replica
		}
		if time.Now().After(end) {
			t.Fatalf("the Sentinel knows no replica within %v", patience)
		}
	}
}

// Port starts a Server that listens at a port of 127.0.0.1 too, and returns that address.
func Port(t testing.TB, args ...string) (s *Server, addr string) {
	t.Helper()
	s, port := startAt(t, args...)
	return s, "127.0.0.1:" + port
}
