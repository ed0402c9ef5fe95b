package unit

import (
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-systemd/v22/activation"
	"github.com/coreos/go-systemd/v22/daemon"
)

// Manager is the connection to the program that started this process, a service manager or the previous process, and
// to its successor. A nil Manager has no sockets, receives no messages and has no successor. Safe for concurrent use.
type Manager struct {
	Sockets
	gates   gates
	parent  *parent // nil = this process replaces none
	program string  // the file that an upgrade starts
	socket  string  // of the service manager; "" = it wants no messages

	watchdog time.Duration // between two signs of life, at most; 0 = the service manager wants none

	log      *slog.Logger
	handover Handover
	replaced chan struct{} // closed once another process serves

	upgrading sync.Mutex // one at a time
	mu        sync.Mutex // guards phase, next and alive, and keeps messages in order
	phase     phase
	alive     time.Time  // when the last sign of life was sent
	next      *successor // that an upgrade waits for
}

// phase is the last state in a message to the manager.
type phase int

const (
	starting phase = iota
	ready
	stopping // or another process has taken over
)

// Find returns the manager that the environment names. It clears the variables of the sockets, so that no other process
// takes them for its own. It returns an error if a socket cannot be served on.
func Find(log *slog.Logger) (*Manager, error) {
	m := &Manager{parent: findParent(), program: program(), socket: os.Getenv("NOTIFY_SOCKET"), log: log,
		handover: nothing{}, replaced: make(chan struct{})}
	m.watchdog = watchdog(m.parent != nil)
	m.gates.ours = make(chan struct{})
	files := activation.Files(true)
	var err error
	if m.parent != nil {
		m.Sockets, m.gates.inherited, err = inherit(files)
	} else {
		m.Sockets, err = assign(files)
		close(m.gates.ours)
	}
	if err != nil {
		return nil, m.Failed(err)
	}
	if m.Client != nil {
		m.Client = m.gates.add(clientKey, m.Client)
	}
	if m.Admin != nil {
		m.Admin = m.gates.add(adminKey, m.Admin)
	}
	return m, nil
}

// LogTo sets the logger for an operator's messages.
func (m *Manager) LogTo(log *slog.Logger) { m.log = log }

// Handover is what one process leaves to the next, beside its sockets.
type Handover interface {
	// Hold stops work that two processes must not both do. It is called before another process is started, and its
	// release if that fails.
	Hold() (release func())
	// Give returns what the new process is to know. The old one calls it when the new one takes over.
	Give() []byte
	// Take takes what the old process has given. The new one calls it just before it accepts.
	Take(given []byte)
}

type nothing struct{}

func (nothing) Hold() (release func()) { return func() {} }
func (nothing) Give() []byte           { return nil }
func (nothing) Take([]byte)            {}

// HandOver registers h.
func (m *Manager) HandOver(h Handover) {
	if m != nil {
		m.handover = h
	}
}

// Failed sends err to the process that this one was to replace, and returns it.
func (m *Manager) Failed(err error) error {
	if m == nil || m.parent == nil || err == nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.phase == starting {
		m.phase = stopping
		m.parent.report(failedWord + err.Error())
	}
	return err
}

// Succeeds reports whether this process replaces another, which serves until Ready.
func (m *Manager) Succeeds() bool { return m != nil && m.parent != nil }

// Given returns the sockets that the service manager bound.
func (m *Manager) Given() Sockets {
	if m == nil {
		return Sockets{}
	}
	return m.Sockets
}

// Listen is net.Listen with sockets that an upgrade hands over: if the old process listened on the address, it returns
// that socket.
func (m *Manager) Listen(network, addr string) (net.Listener, error) {
	if m == nil {
		return net.Listen(network, addr)
	}
	key := network + " " + addr
	l := m.gates.take(key)
	if l == nil {
		var err error
		l, err = net.Listen(network, addr)
		if held := m.gates.held(addr); err != nil && held != "" {
			return nil, fmt.Errorf("the process before listens on that port as %s, and an upgrade cannot move a port to "+
				"another host: restart, or keep the address: %w", held, err)
		}
		if err != nil {
			return nil, err
		}
	}
	return m.gates.add(key, l), nil
}

// Await waits until ready returns true if clients can wait on a socket meanwhile, or if another process still serves
// them: before the first health checks they would get 503. whole is true in the second case: that process can serve
// until all workers have been heard. Await gives up in time, as other pools may have workers that are up.
func (m *Manager) Await(ready func(whole bool) bool) {
	limit, whole := awaitTimeout, false
	switch {
	case m != nil && m.parent != nil:
		limit, whole = successorTimeout, true
	case m.Given().Client == nil:
		return
	}
	for end := time.Now().Add(limit); !ready(whole) && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
	}
}

// Clients are not served during the first wait. During the second, the old process serves them.
const awaitTimeout, successorTimeout = 5 * time.Second, 15 * time.Second

// Ready sends that requests are served now. In a successor, it returns once the old process no longer accepts
// connections. After Stopping it does nothing, and the old process continues to serve.
func (m *Manager) Ready(status string) {
	if m != nil && m.parent != nil {
		if m.current() == stopping {
			return
		}
		m.handover.Take(m.parent.ready(status))
		m.mu.Lock()
		if m.phase == starting {
			m.phase = ready // the process before sends it: the service manager accepts only its messages
		}
		m.mu.Unlock()
		m.gates.open()
		return
	}
	m.sendIf(func(p phase) (phase, bool) { return ready, p == starting }, daemon.SdNotifyReady, "STATUS="+status)
}

// Reload sends that a reload begins, runs it, and sends how it ended.
func (m *Manager) Reload(do func() error) error {
	m.sendIf(whileReady, daemon.SdNotifyReloading, strings.TrimSpace(daemon.SdNotifyMonotonicUsec()))
	status := "serving; reloaded at "
	err := do()
	if err != nil {
		status = "serving as before: a reload was refused, see the log; tried at "
	}
	m.sendIf(whileReady, daemon.SdNotifyReady, "STATUS="+status+time.Now().UTC().Format(time.RFC3339))
	return err
}

// Stopping sends that the process is about to end. It is the last message. Stopping also ends a process that an upgrade
// waits for. An operator who stops a daemon wants no successor, and the new process would serve as soon as this one has
// ended. A successor that does not serve yet tells the old process that it has failed.
func (m *Manager) Stopping(status string) {
	_ = m.Failed(errEarly)
	m.sendIf(func(p phase) (phase, bool) { return stopping, p != stopping }, daemon.SdNotifyStopping, "STATUS="+status)
	m.await(nil)
}

// await makes next the process that an upgrade waits for. It ends the process that the last upgrade waited for. If this
// process stops, it ends next too.
func (m *Manager) await(next *successor) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.next.kill()
	m.next = next
	if m.phase != ready {
		next.kill()
	}
}

// whileReady allows a message between Ready and Stopping. Otherwise the READY=1 that ends a reload would mark a process
// that starts or stops as serving.
func whileReady(p phase) (phase, bool) { return p, p == ready }

// sendIf sends lines as one message if next allows it in the present phase.
func (m *Manager) sendIf(next func(phase) (phase, bool), lines ...string) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	to, allowed := next(m.phase)
	if !allowed {
		return
	}
	m.phase = to
	m.send(lines...)
}

// send sends lines as one message. It logs a failure.
func (m *Manager) send(lines ...string) {
	if m.socket == "" {
		return
	}
	if err := send(m.socket, strings.Join(lines, "\n")); err != nil {
		m.log.Warn("the state of this process cannot be sent to the service manager; is NOTIFY_SOCKET its socket?",
			"socket", m.socket, "state", lines[0], "error", err)
	}
}

// sendTimeout bounds the wait for a manager whose socket is full.
const sendTimeout = time.Second

// send writes one datagram. A name that begins with @ is in Linux's abstract namespace.
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
