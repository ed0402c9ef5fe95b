// Package unit is the service manager's side of the process: the sockets that it was started with, and the messages
// about its states. It speaks systemd's protocols (sd_listen_fds(3), sd_notify(3)), which other managers speak too.
// Without a manager it does nothing.
//
// # How does a new binary take over?
//
//  1. [Manager.Upgrade] starts the file at the path of this process, with its arguments and environment. The sockets
//     are descriptors 3 and up, by LISTEN_FDS and LISTEN_FDNAMES; behind them are two pipes. WARMPATH_UPGRADE holds the
//     parent's pid in place of LISTEN_PID, which is unknown before the process runs.
//  2. Every package listens by [Manager.Listen]. It returns the socket that was handed over for that address, or a new
//     one. A socket that none takes is closed: the configuration has changed.
//  3. The new process writes READY, or FAILED with the reason, into the first pipe. It accepts nothing yet.
//  4. The old one sends MAINPID to the service manager, writes into the second pipe, and accepts no more. It writes a
//     line for the new one's [Manager.HandOver], with data that must not be older than that moment. Its servers do not
//     notice: Accept waits (see gate). It drains.
//
// An error before the fourth step leaves the old process as it was, and the new one is killed. If the old one dies
// first, its end of the second pipe is gone, and the new one serves.
//
// All sockets are handed over, those of the workers' KV events, of LMCache and of the Redis listener too: every port
// belongs to a process at every moment, and nothing has to be tried again. The old process closes the connections there
// at once, as these clients reconnect to the new one. Locked resources (the folder of spilled values, HyperPod's
// segment) are not handed over: a new process ([Manager.Succeeds]) waits until the old one has released them.
//
// What lost: a temporary NOTIFY_SOCKET in place of the pipes. It needs a writable folder, which a hardened unit or an
// empty image lacks, and in the abstract namespace anybody may write to it. github.com/cloudflare/tableflip does the
// same without the service manager: it takes no LISTEN_FDS, sends no MAINPID, and does not report why the new process
// failed.
//
// # Why go-systemd?
//
// github.com/coreos/go-systemd/v22 (Apache-2.0, kept by CoreOS and Fedora people, used by etcd and containerd) reads
// LISTEN_PID, LISTEN_FDS and LISTEN_FDNAMES with their rules, and reads the clock for the message of a reload. Its
// sender lost: it writes without a deadline, and a manager that hangs would hold a reload up.
//
// why.md has the reasons and the details, and what lost.
package unit
