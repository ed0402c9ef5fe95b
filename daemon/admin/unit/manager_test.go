package unit

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// managed returns the manager that this process has, and the socket where its messages come.
func managed(t *testing.T) (m *Manager, l *net.UnixConn, socket string) {
	t.Helper()
	socket = filepath.Join(t.TempDir(), "notify")
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	t.Setenv("NOTIFY_SOCKET", socket)
	m, err = Find(slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return m, l, socket
}

// TestTold checks the messages to a manager, in order. A reload before the process serves or after its end began sends
// none: its READY=1 would be false.
func TestTold(t *testing.T) {
	m, l, socket := managed(t)
	refused := errors.New("a typing error")
	reload := func(want error) {
		if err := m.Reload(func() error { return want }); err != want {
			t.Errorf("Reload returned %v; want %v", err, want)
		}
	}
	reload(nil)
	m.Ready("serving")
	reload(nil)
	reload(refused)
	m.Stopping("draining")
	m.Stopping("draining again")
	reload(nil)
	m.Ready("serving again")
	if err := send(socket, "end"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"READY=1\nSTATUS=serving", "RELOADING=1\nMONOTONIC_USEC=[0-9]{5,}", "READY=1\nSTATUS=serving; reloaded at .*Z",
		"RELOADING=1\nMONOTONIC_USEC=[0-9]{5,}", "READY=1\nSTATUS=serving as before.*Z", "STOPPING=1\nSTATUS=draining", "end",
	} {
		l.SetReadDeadline(time.Now().Add(10 * time.Second))
		b := make([]byte, 1000)
		n, err := l.Read(b)
		if err != nil || !regexp.MustCompile("^"+want+"$").Match(b[:n]) {
			t.Errorf("got %q, %v; want %s", b[:n], err, want)
		}
	}
}

func TestNobodyIsTold(t *testing.T) {
	for _, m := range []*Manager{nil, {}} {
		m.Ready("")
		m.Stopping("")
		if err := m.Reload(func() error { return nil }); err != nil || m.Given() != (Sockets{}) {
			t.Errorf("%+v: %v", m, err)
		}
	}
}

// TestAssign: which socket serves whom, by name and by order, and the refused ones.
func TestAssign(t *testing.T) {
	a, b := tcp(t), tcp(t)
	for _, c := range []struct {
		names         []string // of a and b
		client, admin net.Listener
	}{
		{nil, nil, nil},
		{[]string{"warmpath.socket"}, a, nil},
		{[]string{"admin"}, nil, a},
		{[]string{"LISTEN_FD_3", "LISTEN_FD_4"}, a, b},
		{[]string{"admin", "client"}, b, a},
		{[]string{"other", "client"}, b, a},
		{[]string{"admin", "unknown"}, b, a},
	} {
		var files []*os.File
		for i, name := range c.names {
			files = append(files, file(t, []net.Listener{a, b}[i], name))
		}
		s, err := assign(files)
		at := func(l net.Listener) string {
			if l == nil {
				return ""
			}
			return l.Addr().String()
		}
		if err != nil || at(s.Client) != at(c.client) || at(s.Admin) != at(c.admin) {
			t.Errorf("%v: %s, %s, %v; want %s, %s", c.names, at(s.Client), at(s.Admin), err, at(c.client), at(c.admin))
		}
		for _, l := range []net.Listener{s.Client, s.Admin} {
			if l != nil {
				l.Close()
			}
		}
	}
}

// TestAssignRefuses: a socket that cannot be served on is an error with the reason.
func TestAssignRefuses(t *testing.T) {
	a, b := tcp(t), tcp(t)
	unix, err := net.Listen("unix", filepath.Join(t.TempDir(), "socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close()
	udp, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer udp.Close()
	for want, files := range map[string][]*os.File{
		"too many":        {file(t, a, "x"), file(t, a, "y"), file(t, a, "z")},
		`"client" too`:    {file(t, a, "client"), file(t, b, "client")},
		"is not TCP":      {file(t, unix, "client")},
		"does not listen": {file(t, udp, "client")},
	} {
		if _, err := assign(files); err == nil || !regexp.MustCompile(want).MatchString(err.Error()) {
			t.Errorf("got %v; want an error with %q", err, want)
		}
	}
}

func tcp(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// file returns a second descriptor of a socket, under a name.
func file(t *testing.T, l any, name string) *os.File {
	t.Helper()
	f, err := l.(interface{ File() (*os.File, error) }).File()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	fd, err := syscall.Dup(int(f.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	return os.NewFile(uintptr(fd), name)
}

// takesNone is the handover of a process that is not to take over.
type takesNone struct {
	nothing
	t *testing.T
}

func (n takesNone) Take([]byte) { n.t.Error("it takes over") }

// TestSuccessorThatIsStopped: a successor that is told to stop before it serves reports that to the process before, and
// takes nothing over from it.
func TestSuccessorThatIsStopped(t *testing.T) {
	from, told, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	word, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	defer word.Close()
	if err := to.Close(); err != nil { // the process before may accept no more, or has ended
		t.Fatal(err)
	}
	m := &Manager{parent: &parent{told: told, word: word}, handover: takesNone{t: t}}
	m.gates.ours = make(chan struct{})
	m.Stopping("draining")
	m.Ready("serving")
	line, err := io.ReadAll(from)
	if want := failedWord + errEarly.Error() + "\n"; err != nil || string(line) != want {
		t.Errorf("the process before reads %q, %v; want %q", line, err, want)
	}
	select {
	case <-m.gates.ours:
		t.Error("it accepts")
	default:
	}
}

// TestUpgradeNotBegun: an upgrade beside another, or after one, says nothing of who serves: the other may have
// succeeded.
func TestUpgradeNotBegun(t *testing.T) {
	var log strings.Builder
	m := &Manager{log: slog.New(slog.NewTextHandler(&log, nil)), phase: ready}
	m.upgrading.Lock()
	_, beside := m.Upgrade(time.Second)
	m.upgrading.Unlock()
	m.phase = stopping
	_, after := m.Upgrade(time.Second)
	if !errors.Is(beside, errUpgrading) || !errors.Is(after, errNotReady) {
		t.Errorf("%v; %v", beside, after)
	}
	if text := log.String() + beside.Error() + after.Error(); strings.Contains(text, "serves on") {
		t.Errorf("they say %s", text)
	}
}

// TestWatchdogIsForThisProcess: the variables of another process ask for nothing, but in an upgrade.
func TestWatchdogIsForThisProcess(t *testing.T) {
	for _, c := range []struct {
		usec, pid string
		successor bool
		want      time.Duration
	}{
		{"2000000", "", false, 2 * time.Second}, {"2000000", strconv.Itoa(os.Getpid()), false, 2 * time.Second},
		{"2000000", "1", false, 0}, {"2000000", "1", true, 2 * time.Second}, {"", "", false, 0}, {"x", "", false, 0}, {"-5", "", false, 0},
	} {
		t.Setenv("WATCHDOG_USEC", c.usec)
		t.Setenv("WATCHDOG_PID", c.pid)
		if got := watchdog(c.successor); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}
