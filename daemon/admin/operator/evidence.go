package operator

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/warmpath/warmpath/cache/kvstore/remote"
	"github.com/warmpath/warmpath/cache/tier"
	"github.com/warmpath/warmpath/daemon/admin/decisions"
	"github.com/warmpath/warmpath/daemon/peers"
	"github.com/warmpath/warmpath/daemon/request/limit"
	"github.com/warmpath/warmpath/daemon/request/message"
)

// evidence is what the warnings are made of.
type evidence struct {
	*Overview
	store    tier.L2Stats // of the Redis of [cache]
	peers    peers.Stats
	l2       *remote.Stats // of the KV cache; nil = it has none
	short    int64         // bytes of spill_bytes that the disk has no room for
	unshared bool          // the limits of keys, as Redis does not answer
	gone     bool          // the configuration's file
	limits   []limit.Stats // of keys
	trends   *trends
	ring     *decisions.Ring
	commands commands

	found []Warning // so far
}

// commands is what an operator's commands need, as a shell takes it: the binary, its flags and those of curl.
type commands struct{ binary, file, admin, curl string }

// newCommands returns those by which a shell on this machine, in any folder, finds this process at addr.
func newCommands(binary, file, addr, tokenFile string) commands {
	host, port, err := net.SplitHostPort(addr)
	if err == nil && net.ParseIP(host).IsUnspecified() {
		addr = net.JoinHostPort("127.0.0.1", port)
	}
	c := commands{binary: quoted(binary), file: anywhere(file), curl: quoted("http://" + addr)}
	if addr != "127.0.0.1:9090" {
		c.admin = " --admin " + quoted(addr)
	}
	if tokenFile != "" {
		c.admin += " --token-file " + anywhere(tokenFile)
		c.curl = `-H "Authorization: Bearer $(cat ` + anywhere(tokenFile) + `)" ` + c.curl
	}
	return c
}

// status is a command of warmpath that asks this process.
func (c commands) status(command string) string { return c.binary + " " + command + c.admin }

// check is warmpath check of the file in force.
func (c commands) check(flags string) string {
	return c.binary + " check" + flags + " --config " + c.file
}

// get asks this process for a page.
func (c commands) get(path string) string { return "curl -gs " + c.curl + path }

// order has this process order its workers, which it does with a token only; without one it is status.
func (c commands) order(path string) string {
	if !strings.Contains(c.curl, "Authorization") {
		return c.status("status")
	}
	return "curl -X POST -gs " + c.curl + path
}

// anywhere is a file's path for a shell in any folder.
func anywhere(file string) string {
	if path, err := filepath.Abs(file); err == nil {
		file = path
	}
	return quoted(file)
}

var plain = regexp.MustCompile(`^[\w./:=@%+,-]+$`)

// quoted is a word as a shell takes it.
func quoted(word string) string {
	if plain.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// why explains the last request of the pool and the key that the strategy turned away or failed on; "" = any.
func (e *evidence) why(pool, key, strategy string) string {
	q := decisions.Query{Pool: pool, Key: key, Limit: 1}
	if strategy != "" {
		q.Limit = 1000
	}
	for _, d := range e.ring.Latest(q) {
		if strategy == "" || d.Strategy == strategy && (d.Fallback != "" || d.End == message.FaultRejected.Code) {
			return e.commands.status("why " + quoted(d.ID))
		}
	}
	return e.commands.status("why last")
}

// newEvidence gathers it, with the commands for the listener at addr. The pools of o are there already.
func newEvidence(o *Overview, c *Config, t *trends, addr string) *evidence {
	e := &evidence{Overview: o, store: c.Store.Stats().L2, peers: c.Peers.Stats(), trends: t, ring: c.Ring,
		limits: c.Limits.Counts(o.Now), unshared: c.Limits.Lost(),
		commands: newCommands(c.Binary, o.Reload.File, addr, c.AdminTokenFile)}
	if _, err := os.Stat(o.Reload.File); o.Reload.File != "" {
		e.gone = errors.Is(err, fs.ErrNotExist)
	}
	if kv, open := c.KVCache.Stats(); open {
		e.l2 = kv.L2
		if kv.Spill != nil {
			e.short = kv.Spill.Short
		}
	}
	return e
}
