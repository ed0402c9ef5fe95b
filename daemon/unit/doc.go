// Package unit is the service manager's side of the process: the sockets that it was started with, and what the
// manager is told of its states. It speaks systemd's protocols (sd_listen_fds(3), sd_notify(3)), which others speak
// too. Without a manager it does nothing.
//
// # Why sockets from outside?
//
// A socket that the manager holds stays open while one process ends and the next one starts: clients that connect
// meanwhile wait in its queue, and nobody is refused (TestRestartOnKeptSockets in daemon/warmpath). SO_REUSEPORT lost:
// each process has a queue of its own, and what waits in the old one's is reset when it closes.
//
// # Why go-systemd?
//
// github.com/coreos/go-systemd/v22 (Apache-2.0, kept by CoreOS and Fedora people, used by etcd and containerd) reads
// LISTEN_PID, LISTEN_FDS and LISTEN_FDNAMES with their rules, and knows the clock that a reload is told by. Its sender
// lost: it writes without a deadline, and a manager that hangs would hold a reload up.
package unit
