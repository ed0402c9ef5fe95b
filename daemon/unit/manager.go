package unit

import (
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
)

// Manager is who started this process. A nil Manager gave no sockets and is told nothing. Safe for concurrent use.
type Manager struct {
	Sockets
	log    *slog.Logger
	socket string // that it listens on; "" = it wants to hear nothing

	mu    sync.Mutex // guards phase, and keeps messages in order
	phase phase
}

// phase is what the manager was told last.
type phase int

const (
	starting phase = iota
	ready
	stopping
)

// Find returns the manager that the environment names, and clears the variables of sockets, so that no other process
// takes them for its own. Its error is a socket that cannot be served on.
func Find(log *slog.Logger) (*Manager, error) {
	sockets, err := inherit()
	if err != nil {
		return nil, err
	}
	return &Manager{Sockets: sockets, log: log, socket: os.Getenv("NOTIFY_SOCKET")}, nil
}

// Given returns the sockets that the process was started with.
func (m *Manager) Given() Sockets {
	if m == nil {
		return Sockets{}
	}
	return m.Sockets
}

// Await waits until ready returns true, if clients may wait on a socket from outside already: before the first health
// checks they would get 503. It gives up after awaitTimeout: other pools may have workers that are up.
func (m *Manager) Await(ready func() bool) {
	if m.Given().Client == nil {
		return
	}
	for end := time.Now().Add(awaitTimeout); !ready() && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
	}
}

const awaitTimeout = 5 * time.Second

// Ready tells that requests are served now.
func (m *Manager) Ready(status string) {
	m.tell(func(p phase) (phase, bool) { return ready, p == starting }, daemon.SdNotifyReady, "STATUS="+status)
}

// Reload tells that a reload begins, has it done, and tells how it ended.
func (m *Manager) Reload(do func() error) error {
	m.tell(whileReady, daemon.SdNotifyReloading, strings.TrimSpace(daemon.SdNotifyMonotonicUsec()))
	status := "serving; reloaded at "
	err := do()
	if err != nil {
		status = "serving as before: a reload was refused, see the log; tried at "
	}
	m.tell(whileReady, daemon.SdNotifyReady, "STATUS="+status+time.Now().UTC().Format(time.RFC3339))
	return err
}

// Stopping tells that the process is about to end. Nothing is told after it.
func (m *Manager) Stopping(status string) {
	m.tell(func(p phase) (phase, bool) { return stopping, p != stopping }, daemon.SdNotifyStopping, "STATUS="+status)
}

// whileReady lets a message out between Ready and Stopping: the READY=1 that ends a reload would take a process that
// starts or stops for one that serves.
func whileReady(p phase) (phase, bool) { return p, p == ready }

// tell sends lines as one message if next allows it in the phase that is. A failure is logged.
func (m *Manager) tell(next func(phase) (phase, bool), lines ...string) {
	if m == nil || m.socket == "" {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	to, allowed := next(m.phase)
	if !allowed {
		return
	}
	m.phase = to
	if err := send(m.socket, strings.Join(lines, "\n")); err != nil {
		m.log.Warn("the service manager cannot be told the state of this process; is NOTIFY_SOCKET its socket?",
			"socket", m.socket, "state", lines[0], "error", err)
	}
}

// sendTimeout bounds the wait for a manager whose socket is full.
const sendTimeout = time.Second

// send writes one datagram. A name that begins with @ is in Linux' abstract namespace.
func send(socket, message string) error {
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetWriteDeadline(time.Now().Add(sendTimeout)); err != nil {
		return err
	}
	_, err = conn.Write([]byte(message))
	return err
}
