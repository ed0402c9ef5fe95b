package kvcache

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/warmpath/warmpath/cache/kvstore/remote"
	"github.com/warmpath/warmpath/cache/parts/goredis"
	"github.com/warmpath/warmpath/daemon/fleet/discover"
)

// L2 configures the tier behind memory and disk.
type L2 struct {
	Memory            bool                   // memory keeps values that L2 has, too
	Redis             func() (string, error) // its URL; nil = tieredstorage
	Prefix            string                 // of the keys in Redis
	CAFile            string                 // PEM of the certificate authorities; "" = the system's
	CertFile, KeyFile string                 // PEM, shown to a Redis that asks for a certificate; "" = none
	TTL               time.Duration          // of values without an end of their own, in Redis
	Members           Members                // of tieredstorage
	Self              string                 // the member that is this daemon; "" = the one at an address of this machine
	Resolve           discover.Resolver      // of Members.Name

	Through bool   // a put waits until L2 has the value
	Queue   int64  // bytes on their way to L2; 0 = a quarter of the memory
	Promote string // "always", "second" or "never"
	Timeout time.Duration
}

// Members are the daemons of a pool, by their Redis listeners.
type Members struct {
	List []string // HOST:PORT
	Name string   // name:port, a member at each address of it; "" = none
}

// far is L2 together with the discovery of its members. A nil far is no L2.
type far struct {
	life      context.Context
	log       *slog.Logger
	remote    *remote.Remote
	discovery *discover.Discovery[member] // nil = no pool
	members   Members                     // as configured last
	current   atomic.Pointer[[]string]    // the members' addresses, HOST:PORT
}

// member is the address of a daemon of the pool.
type member string

// Equal reports whether both are one, for discover.
func (m member) Equal(other member) bool { return m == other }

// addresses is how discover gets members. They are in no file and no pod.
type addresses struct{ discover.Format[member] }

func (addresses) URL(m member) string { return string(m) }

func (addresses) AtURL(url string, _ bool) member { return member(strings.TrimPrefix(url, "http://")) }

func (addresses) Watch(ctx context.Context, _ func() []string, _ func()) { <-ctx.Done() }

// openL2 makes the clients of L2. It resolves the members' names, but sends nothing to a server.
func openL2(life context.Context, c Config) (*far, error) {
	if c.L2 == nil {
		return nil, nil
	}
	rc := remote.Config{Memory: c.L2.Memory, Promote: remote.Promote(c.L2.Promote), Through: c.L2.Through,
		Queue: c.L2.Queue, Timeout: c.L2.Timeout, Log: c.Log}
	if rc.Queue == 0 {
		rc.Queue = c.MaxBytes / 4
	}
	security, err := goredis.TLS("kv_cache.l2", c.L2.CAFile, c.L2.CertFile, c.L2.KeyFile)
	if err != nil {
		return nil, err
	}
	f := &far{life: life, log: c.Log}
	if c.L2.Redis != nil {
		url, err := c.L2.Redis()
		if err != nil {
			return nil, err
		}
		rc.Redis = &remote.Redis{URL: url, Prefix: c.L2.Prefix, TTL: c.L2.TTL, TLS: security}
	} else {
		rc.Pool, err = f.pool(c, security.RootCAs)
		if err != nil {
			return nil, err
		}
	}
	f.remote, err = remote.Open(rc)
	return f, err
}

// isPool reports whether L2 is the memory of daemons that reach each other by their Redis listeners.
func (f *far) isPool() bool { return f != nil && f.discovery != nil }

// run works for L2 until life ends. The door is open by then, so this daemon can find itself among the members.
func (f *far) run(tending *sync.WaitGroup) {
	if f == nil {
		return
	}
	tending.Go(func() { f.remote.Run(f.life) })
	if f.discovery != nil {
		tending.Go(func() { f.discovery.Run(f.life, f.changed) })
	}
}

func (f *far) pool(c Config, authorities *x509.CertPool) (*remote.Pool, error) {
	password, err := c.Password()
	if err != nil {
		return nil, err
	}
	f.discovery = discover.New(discover.Config[member]{Log: c.Log, Resolve: c.L2.Resolve, Format: addresses{}})
	p := &remote.Pool{Members: f.take(c.L2.Members), Bytes: c.MaxBytes, User: c.User, Password: password}
	if c.Certificate != nil {
		p.TLS = &tls.Config{RootCAs: authorities, MinVersion: tls.VersionTLS12}
	}
	p.Self = func(m string) bool { return m == c.L2.Self }
	if c.L2.Self == "" {
		here := addressesHere(c.Log)
		p.Self = func(m string) bool { return isHere(m, c.RESP, here) }
	}
	if !slices.ContainsFunc(p.Members, p.Self) {
		c.Log.Warn("none of the members of the KV cache's pool is this daemon, so it keeps no value for the others; "+
			"list its kv_cache.resp, or set kv_cache.l2.self", "members", p.Members, "resp", c.RESP)
	}
	return p, nil
}

// take sets the configured members, and resolves a name among them.
func (f *far) take(m Members) []string {
	f.members = m
	s := discover.Sources[member]{Group: discover.Group{Name: m.Name}}
	for _, addr := range m.List {
		s.Workers = append(s.Workers, member(addr))
	}
	ctx, cancel := context.WithTimeout(f.life, resolveTime)
	defer cancel()
	return f.note(texts(f.discovery.Take(ctx, s)))
}

// note stores the addresses of the members, for Member.
func (f *far) note(members []string) []string {
	f.current.Store(&members)
	return members
}

// Hear implements resp.Pool.
func (f *far) Hear(message []byte) error { return f.remote.Hear(message) }

// Member implements resp.Pool: it reports whether an address is a member's or this machine's own. It resolves the names
// of members.
func (f *far) Member(a netip.Addr) bool {
	if a.IsLoopback() || addressesHere(f.log)[a] {
		return true
	}
	ctx, cancel := context.WithTimeout(f.life, resolveTime)
	defer cancel()
	for _, m := range *f.current.Load() {
		host, _, err := net.SplitHostPort(m)
		if err != nil {
			continue
		}
		if ip, err := netip.ParseAddr(host); err == nil {
			if ip.Unmap() == a {
				return true
			}
			continue
		}
		all, _ := net.DefaultResolver.LookupNetIP(ctx, "ip", host) // a name that does not exist has no address
		if slices.ContainsFunc(all, func(ip netip.Addr) bool { return ip.Unmap() == a }) {
			return true
		}
	}
	return false
}

// setMembers applies the members of a new configuration.
func (f *far) setMembers(m Members) {
	if f == nil || f.discovery == nil || m.Name == f.members.Name && slices.Equal(m.List, f.members.List) {
		return
	}
	f.remote.SetMembers(f.take(m))
}

// changed applies the members that DNS returns.
func (f *far) changed(members []member) {
	f.log.Info("the members of the KV cache's pool are others now", "members", members)
	f.remote.SetMembers(f.note(texts(members)))
}

// resolveTime bounds the first DNS query. Later queries follow.
const resolveTime = 2 * time.Second

func texts(members []member) []string {
	list := make([]string, len(members))
	for i, m := range members {
		list[i] = string(m)
	}
	return list
}

// addressesHere lists the addresses of this machine.
func addressesHere(log *slog.Logger) map[netip.Addr]bool {
	list, err := net.InterfaceAddrs()
	if err != nil {
		log.Warn("the addresses of this machine are not known; set kv_cache.l2.self", "error", err)
	}
	here := map[netip.Addr]bool{}
	for _, a := range list {
		if p, err := netip.ParsePrefix(a.String()); err == nil {
			here[p.Addr().Unmap()] = true
		}
	}
	return here
}

// isHere reports whether a member is the door of this daemon: it has the door's port and an address of this machine, or
// the door's very text.
func isHere(m, door string, here map[netip.Addr]bool) bool {
	host, port, err := net.SplitHostPort(m)
	if err != nil {
		return false
	}
	_, ours, err := net.SplitHostPort(door)
	if err != nil || port != ours {
		return false
	}
	if a, err := netip.ParseAddr(host); err == nil {
		return here[a.Unmap()] || a.IsLoopback()
	}
	name, err := os.Hostname()
	return host == "localhost" || err == nil && (host == name || strings.HasPrefix(host, name+"."))
}

func (f *far) stats() *remote.Stats {
	if f == nil {
		return nil
	}
	s := f.remote.Stats()
	return &s
}

func (f *far) close() error {
	if f == nil || f.remote == nil {
		return nil
	}
	if err := f.remote.Close(); err != nil {
		return fmt.Errorf("kvcache: %w", err)
	}
	return nil
}
