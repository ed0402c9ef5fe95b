package conf

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// What a request may cost, at least and at most. An agent's header of 12 KB and a client's usual 1 KB fit in between; a
// megabyte of header for each of 20,000 connections would be 20 GB.
const (
	minHeader    = 4 << 10
	maxHeader    = 1 << 20
	maxDecisions = 4 << 30
	maxOverflow  = 1 << 40
	minBuffer    = 64 << 10 // less would stream nearly every chat, and a streamed request cannot be sent again
	maxCount     = 1_000_000
)

func checkServer(r *report, s *Server) {
	checkAddress(r, "server.listen", s.Listen)
	switch {
	case !checkAddress(r, "server.admin", s.Admin):
	case !loopback(s.Admin) && s.AdminTokenFile == "":
		r.add("server.admin", fmt.Sprintf("%q is reachable from outside and has no token", s.Admin),
			"set admin_token_file, or listen on 127.0.0.1")
	}
	checkCertificate(r, "server", s.TLSCertFile, s.TLSKeyFile)
	checkLimits(r, s)
	r.clientTime("server.read_timeout", s.ReadTimeout)
	r.clientTime("server.write_timeout", s.WriteTimeout)
	r.clientTime("server.idle_timeout", s.IdleTimeout)
	if k := s.Keepalive; k != 0 && (k < time.Second || k > 10*time.Minute) {
		r.add("server.keepalive", fmt.Sprintf("%v is not between 1s and 10m", k), `write "15s", or "0s" for none`)
	}
	if s.WebsocketIdle != 0 {
		r.clientTime("server.websocket_idle", s.WebsocketIdle)
	}
	r.notNegative("server.drain_delay", s.DrainDelay, "to drain at once, or how long a load balancer takes to notice")
	r.notNegative("server.drain_timeout", s.DrainTimeout, "to stop at once, or how long to wait")
	for i, origin := range s.CORSOrigins {
		checkOrigin(r, elem("server.cors_origins", i), origin)
	}
	if len(s.RootPaths) > 100 {
		r.add("server.root_paths", fmt.Sprintf("there are %d", len(s.RootPaths)), "name at most 100")
	}
	for i, root := range s.RootPaths {
		if root == "/" || !strings.HasPrefix(root, "/") || path.Clean(root) != root || strings.ContainsAny(root, "%;?# *") {
			r.add(elem("server.root_paths", i), fmt.Sprintf("%q is no path to cut off", root),
				`write as "/llm", without a slash at its end`)
		}
	}
	for i, name := range s.DeadlineHeader {
		if name == "" {
			r.add(elem("server.deadline_header", i), "it is empty", "name a header field, or take it out")
		}
		checkToken(r, elem("server.deadline_header", i), name)
	}
	checkAccessLog(r, "server.access_log", s.AccessLog)
	checkEventAddress(r, "server.kv_events_listen", s.KVEventsListen)
	r.oneOf("server.log_format", s.LogFormat, "text", "json")
	r.oneOf("server.worker_metrics", s.WorkerMetrics, "all", "gauges", "none")
	r.oneOf("server.log_level", s.LogLevel, "debug", "info", "warn", "error")
}

func checkLimits(r *report, s *Server) {
	r.between("server.max_connections", s.MaxConnections, 1, maxCount, "connections")
	r.between("server.max_in_flight", s.MaxInFlight, 1, maxCount, "requests")
	r.between("server.max_header_bytes", s.MaxHeaderBytes, minHeader, maxHeader, "bytes")
	r.between("server.overflow_bytes", s.OverflowBytes, 0, maxOverflow, "bytes, 0 to keep none,")
	if info, err := os.Stat(s.OverflowDir); s.OverflowDir != "" && (err != nil || !info.IsDir()) {
		r.add("server.overflow_dir", "there is no folder "+s.OverflowDir, `make it, or write "" for the system's`)
	}
	r.between("server.decisions_bytes", s.DecisionsBytes, 0, maxDecisions, "bytes, 0 for none,")
	if s.MaxBodyBytes < 1 {
		r.add("server.max_body_bytes", fmt.Sprintf("%d is too small", s.MaxBodyBytes), "write bytes, as 1073741824")
		return
	}
	least := min(minBuffer, s.MaxBodyBytes)
	r.between("server.buffer_body_bytes", s.BufferBody, least, s.MaxBodyBytes, "bytes, at most max_body_bytes,")
}

// listener is an address at which the process listens, and its key.
type listener struct{ path, address string }

// listenersOf lists the addresses of all that listens.
func listenersOf(c *Config) []listener {
	all := []listener{{"server.listen", c.Server.Listen}, {"server.admin", c.Server.Admin},
		{"server.kv_events_listen", strings.TrimPrefix(c.Server.KVEventsListen, "tcp://")},
		{"kv_cache.resp", c.KVCache.RESP}, {"kv_cache.hyperpod", c.KVCache.HyperPod}, {"lmcache.pull", c.LMCache.Pull},
		{"lmcache.reply", c.LMCache.Reply}, {"lmcache.heartbeat", c.LMCache.Heartbeat},
		{"lmcache.coordinator", c.LMCache.Coordinator}}
	return slices.DeleteFunc(all, func(l listener) bool { return l.address == "" })
}

// checkListeners reports two keys with one address. Found here, it is a line of `warmpath check`; else the process
// does not start.
func checkListeners(r *report, all []listener) {
	for i, l := range all {
		for _, other := range all[:i] {
			if overlap(l.address, other.address) {
				r.add(l.path, fmt.Sprintf("%q and %s, %q, are one address", l.address, other.path, other.address),
					"give each listener a port of its own")
				break
			}
		}
	}
}

// checkCertificate checks that the pair is complete and fits: found here, it is a line of `warmpath check`; found by
// the listener, it is every client's failed handshake.
func checkCertificate(r *report, table, certFile, keyFile string) {
	cert, key := child(table, "tls_cert_file"), child(table, "tls_key_file")
	switch {
	case certFile == "" && keyFile == "":
		return
	case keyFile == "":
		r.add(cert, "it stands without tls_key_file", "give both, or neither")
		return
	case certFile == "":
		r.add(key, "it stands without tls_cert_file", "give both, or neither")
		return
	}
	certPEM, okCert := readPEM(r, cert, certFile, "give the certificate's PEM file")
	keyPEM, okKey := readPEM(r, key, keyFile, "give the key's PEM file")
	if !okCert || !okKey {
		return
	}
	if _, err := tls.X509KeyPair(certPEM, keyPEM); err != nil {
		why := strings.TrimPrefix(err.Error(), "tls: ")
		r.add(cert, fmt.Sprintf("%s is no pair with tls_key_file: %s", certFile, why),
			"give a certificate in PEM and the key that it was made for")
	}
}

// checkOrigin checks what is compared with a browser's Origin byte by byte: one that can never be equal is a mistake.
func checkOrigin(r *report, path, s string) {
	if s == "*" {
		return
	}
	u, err := url.Parse(s)
	if err != nil || u.Scheme == "" || u.Host == "" || strings.Contains(s, "*") ||
		s != strings.ToLower(u.Scheme+"://"+u.Host) {
		r.add(path, fmt.Sprintf("%.80q is no origin", s),
			`write as a browser sends it, "https://chat.example.com", or "*" for any`)
	}
}

// checkFolder checks a folder without making it: it is there, or can be made.
func checkFolder(r *report, path, dir string) {
	for up := dir; up != ""; up = filepath.Dir(up) {
		info, err := os.Stat(up)
		if err != nil {
			continue // the root is there at the latest, or "." of a relative path
		}
		if !info.IsDir() {
			r.add(path, up+" is no folder", "write the name of a folder, or of one that can be made")
		}
		return
	}
}

// checkAccessLog checks a file without making it: its folder must be there.
func checkAccessLog(r *report, path, s string) {
	if s == "" || s == "stdout" || s == "stderr" {
		return
	}
	if info, err := os.Stat(s); err == nil && info.IsDir() {
		r.add(path, s+" is a folder", "write stdout, stderr or a file's name")
	} else if err == nil && info.Mode()&fs.ModeNamedPipe != 0 {
		r.add(path, s+" is a pipe: opening it would wait for a reader, and each request after it",
			"write stdout, stderr or a file's name")
	} else if _, err := os.Stat(filepath.Dir(s)); errors.Is(err, fs.ErrNotExist) {
		r.add(path, "there is no folder "+filepath.Dir(s), "make it, or write stdout, stderr or a file in another folder")
	}
}

// checkStateFile checks the file without making it: its folder must be there. shared is true if routers share their
// history through a Redis.
func checkStateFile(r *report, file string, shared bool) {
	const path = "server.state_file"
	if file == "" {
		return
	}
	if shared {
		r.add(path, "it stands beside a Redis, which keeps the same",
			`leave it out, or write history.redis = "off" to share no history`)
	}
	if info, err := os.Stat(file); err == nil && !info.Mode().IsRegular() {
		r.add(path, file+" is no file", "write the name of a file of its own")
	} else if info, err := os.Stat(filepath.Dir(file)); err != nil || !info.IsDir() {
		r.add(path, "there is no folder "+filepath.Dir(file), "make it, or write a file in another folder")
	}
}
