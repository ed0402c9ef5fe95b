package redistest

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/porttest"
)

// Refusal is a redis-server that refuses a router in one way.
type Refusal struct {
	Name   string // the first word of its replies
	URL    string
	Remedy string // a part of what an operator is to be told
}

const login = "correct the user and the password"

// Refusals starts a server for each way in which a Redis refuses. In no text of an error may the word hidden stand: it
// is the password of all URLs.
func Refusals(t testing.TB) []Refusal {
	t.Helper()
	locked := Start(t)
	locked.Do("ACL SETUSER narrow on >hidden ~* +@all -set -eval -evalsha -xadd")
	locked.Do("CONFIG SET requirepass right")
	as := func(user string) string {
		return strings.Replace(locked.URL(), "unix://", "unix://"+user+":hidden@", 1)
	}
	_, addr := Port(t)
	replica, _ := Port(t, "--replicaof", strings.Replace(addr, ":", " ", 1))
	_, member := NodeWithAll(t)
	return []Refusal{
		{Name: "LOADING", URL: loading(t).URL(), Remedy: "back in a while"},
		{Name: "NOAUTH", URL: locked.URL(), Remedy: login},
		{Name: "WRONGPASS", URL: as("default"), Remedy: login},
		{Name: "NOPERM", URL: as("narrow"), Remedy: "give the URL's user the right"},
		{Name: "READONLY", URL: replica.URL(), Remedy: "name the primary"},
		{Name: "OOM", URL: Start(t, "--maxmemory", "1").URL(), Remedy: "raise its maxmemory"},
		{Name: "NOREPLICAS", URL: Start(t, "--min-replicas-to-write", "1").URL(), Remedy: "min-replicas-to-write"},
		{Name: "MISCONF", URL: withoutDisk(t).URL(), Remedy: "free its disk"},
		{Name: "MOVED", URL: member, Remedy: "add ?cluster=true"},
		{Name: "CLUSTERDOWN", URL: node(t).URL(), Remedy: "CLUSTER INFO"},
	}
}

// withoutDisk starts a server that cannot write its file, and takes no changes therefore.
func withoutDisk(t testing.TB) *Server {
	t.Helper()
	gone, err := os.MkdirTemp("", "redis")
	if err != nil {
		t.Fatal(err)
	}
	s := Start(t, "--dir", gone)
	if err := os.Remove(gone); err != nil {
		t.Fatal(err)
	}
	s.Do(`CONFIG SET save "3600 1"`)
	s.Do("BGSAVE")
	s.refuses("MISCONF")
	return s
}

// loading starts a server that reads its file for some 5 minutes: tests that run beside others may come late to it.
func loading(t testing.TB) *Server {
	t.Helper()
	s := Start(t, "--enable-debug-command", "yes", "--rdbcompression", "no")
	s.Do("DEBUG POPULATE 50000 key 1000")
	s.Do("SAVE")
	s.Kill()
	s.args = append(s.args, "--key-load-delay", "6000", "--loading-process-events-interval-bytes", "1024")
	s.Launch()
	s.refuses("LOADING")
	return s
}

// refuses waits until the server refuses a write with that word.
func (s *Server) refuses(word string) {
	s.t.Helper()
	for end := time.Now().Add(patience); !strings.HasPrefix(s.Try("SET a b"), "-"+word); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			s.t.Fatalf("redis-server does not answer %s within %v", word, patience)
		}
	}
}

// node starts a node of a cluster, which has no slots.
func node(t testing.TB) *Server {
	t.Helper()
	s, _ := startAt(t, "--cluster-enabled", "yes", "--cluster-port", strconv.Itoa(porttest.Row(t, 1)))
	return s
}

// NodeWithAll starts a cluster in which one node has all slots, and returns both nodes' URLs.
func NodeWithAll(t testing.TB) (owner, other string) {
	t.Helper()
	bus := strconv.Itoa(porttest.Row(t, 1))
	o, port := startAt(t, "--cluster-enabled", "yes", "--cluster-port", bus)
	o.Do("CLUSTER ADDSLOTSRANGE 0 16383")
	m := node(t)
	m.Do(fmt.Sprintf("CLUSTER MEET 127.0.0.1 %s %s", port, bus))
	for _, s := range []*Server{o, m} {
		s.until("CLUSTER INFO", "cluster_state:ok")
	}
	m.refuses("MOVED")
	return "redis://" + net.JoinHostPort("127.0.0.1", port), m.URL()
}
