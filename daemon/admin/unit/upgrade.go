package unit

import (
	"errors"
	"fmt"
	"os"
	"time"
)

// UpgradeTimeout is how long a new process has until it serves, unless the caller sets another time.
const UpgradeTimeout = time.Minute

var (
	errUnmanaged = errors.New("this daemon was not started by warmpath serve: it cannot be replaced")
	errUpgrading = errors.New("another upgrade is under way: wait until it has ended")
	errNotReady  = errors.New("this process starts, drains, or has been replaced already: ask the one that serves")
	errStopped   = errors.New("this process was told to stop meanwhile: the new one has ended, too")
	errEarly     = errors.New("it was told to stop before it served")
	errInit      = errors.New("this process is the first of its container, which ends with it: an upgrade cannot " +
		"outlive it; roll out a new container, with server.drain_delay for its load balancer")
)

// Upgrade starts the file of this process anew, and returns the pid of the new process once that accepts and this one
// does not. Then Replaced is closed, and the caller should serve what is open to its end. On an error, which is logged,
// everything is as before. The new process has to serve within wait.
func (m *Manager) Upgrade(wait time.Duration) (pid int, err error) {
	if m == nil {
		return 0, errUnmanaged
	}
	if !m.upgrading.TryLock() {
		return 0, m.notBegun(errUpgrading)
	}
	defer m.upgrading.Unlock()
	switch {
	case m.current() != ready:
		return 0, m.notBegun(errNotReady)
	case os.Getpid() == 1:
		return 0, m.refused(errInit)
	}
	m.log.Info("upgrade: starting the new process", "file", m.program, "timeout", wait)
	release := m.handover.Hold()
	pid, err = m.replace(wait)
	if err != nil {
		release()
		return 0, m.refused(err)
	}
	m.log.Info("upgrade: the new process serves, this one drains", "file", m.program, "new_pid", pid)
	close(m.replaced)
	return pid, nil
}

// notBegun logs why no new process is started. Another upgrade may succeed meanwhile, so it does not say who serves.
func (m *Manager) notBegun(err error) error {
	m.log.Warn("upgrade not begun", "file", m.program, "error", err)
	return fmt.Errorf("upgrade not begun: %w", err)
}

// refused logs why there is no new process.
func (m *Manager) refused(err error) error {
	m.log.Error("upgrade failed: this process serves on as before", "file", m.program, "error", err)
	return fmt.Errorf("upgrade failed, the old process serves on: %w", err)
}

// replace hands the sockets over to a new process.
func (m *Manager) replace(wait time.Duration) (pid int, err error) {
	next, err := start(m.program, &m.gates)
	if err != nil {
		return 0, err
	}
	m.await(next)
	status, err := next.await(wait)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.next = nil
	if m.phase != ready { // Stopping has killed it
		return 0, next.end(errStopped)
	}
	if err != nil {
		return 0, err
	}
	pid = next.cmd.Process.Pid
	// The service manager accepts messages of the main process only. This one goes first: once released, the new process
	// may send one about a reload.
	m.send(fmt.Sprintf("MAINPID=%d", pid), "READY=1", "STATUS="+status)
	if err := next.release(m.handover.Give()); err != nil {
		m.send(fmt.Sprintf("MAINPID=%d", os.Getpid()))
		return 0, next.end(fmt.Errorf("%s was ready and ended before it served (%v): look at its lines in the log",
			m.program, err))
	}
	m.phase = stopping
	m.gates.hand()
	return pid, nil
}

// current returns the phase.
func (m *Manager) current() phase {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.phase
}

// Replaced returns a channel that is closed once another process serves in this one's place.
func (m *Manager) Replaced() <-chan struct{} {
	if m == nil {
		return nil
	}
	return m.replaced
}

// IsReplaced reports whether another process serves in this one's place.
func (m *Manager) IsReplaced() bool {
	select {
	case <-m.Replaced():
		return true
	default:
		return false
	}
}
