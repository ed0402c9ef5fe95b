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
// # How does a new binary take over?
//
//  1. [Manager.Upgrade] starts the file at the path of this process, with its arguments and environment. The sockets
//     are descriptors 3 and up, by LISTEN_FDS and LISTEN_FDNAMES; behind them are two pipes. WARMPATH_UPGRADE holds the
//     parent's pid in place of LISTEN_PID, which nobody knows before the process runs.
//  2. Every room binds by [Manager.Listen]. It returns the socket that was handed over for that address, or a new one.
//     A socket that nobody asks for is closed: the configuration has changed.
//  3. The new process writes READY, or FAILED and why, into the first pipe. It accepts nothing yet.
//  4. The old one tells the service manager MAINPID, writes into the second pipe, and accepts no more. What it writes
//     is a line for the new one's [Manager.HandOver]: what must not be older than that moment. Its servers do not
//     notice: Accept waits (see gate). It drains.
//
// An error before the fourth step leaves the old process as it was, and the new one is killed. If the old one dies
// first, its end of the second pipe is gone, and the new one serves.
//
// All sockets are handed over, those of the workers' KV events, of LMCache and of the RESP door too: there is no moment
// in which a port is nobody's, and nothing to try again. The old process closes what is connected there at once, as
// who comes again finds the new one. What is locked, not bound (the folder of spilled values, HyperPod's segment), is
// not handed over: who [Manager.Succeeds] waits until the process before has given it up.
//
// What lost: a temporary NOTIFY_SOCKET in place of the pipes. It needs a folder that may be written, which a hardened
// unit or an empty image lacks, and in the abstract namespace anybody may write to it. github.com/cloudflare/tableflip
// does what is here but for the service manager: it takes no LISTEN_FDS, tells no MAINPID, and does not say why the new
// process failed.
//
// # Why go-systemd?
//
// github.com/coreos/go-systemd/v22 (Apache-2.0, kept by CoreOS and Fedora people, used by etcd and containerd) reads
// LISTEN_PID, LISTEN_FDS and LISTEN_FDNAMES with their rules, and knows the clock that a reload is told by. Its sender
// lost: it writes without a deadline, and a manager that hangs would hold a reload up.
package unit
