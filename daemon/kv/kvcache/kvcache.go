package kvcache

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/warmpath/warmpath/cache/kvstore"
	"github.com/warmpath/warmpath/cache/kvstore/arena"
	"github.com/warmpath/warmpath/cache/kvstore/catalog"
	"github.com/warmpath/warmpath/cache/kvstore/chunks"
	"github.com/warmpath/warmpath/cache/kvstore/remote"
	"github.com/warmpath/warmpath/cache/kvstore/spill"
	"github.com/warmpath/warmpath/cache/parts/bind"
	"github.com/warmpath/warmpath/daemon/kv/hyperpod"
	"github.com/warmpath/warmpath/daemon/kv/resp"
	"github.com/warmpath/warmpath/daemon/transport/certificate"
)

// Config sets the size of the cache and the addresses of its doors.
type Config struct {
	MaxBytes int64  // of memory
	Policy   string // "lru", "s3fifo" or "fifo"

	RESP        string                 // HOST:PORT of the Redis listener; "" = none
	User        string                 // of AUTH, beside "default"
	Password    func() (string, error) // of AUTH; "" = AUTH is not required
	Certificate *certificate.Pair      // nil = plain TCP
	MaxConns    int

	SpillDir   string // folder for values that memory evicts; "" = none
	SpillBytes int64  // of its files

	L2 *L2 // nil = none

	HyperPod string      // HOST:PORT of the HyperPod listener; "" = none
	Segment  string      // the memory's name in /dev/shm, if there is that door
	Mode     os.FileMode // of that file

	Succeeds bool // another process has folder and segment, and releases them soon: see succession

	Beliefs Beliefs // gets the lost keys; nil = none does

	ChunkTokens int // the chunk_size of the workers' LMCache; 0 = not known

	Bind bind.Binder // of the listeners; nil = the system

	Version string
	Log     *slog.Logger
}

// Cache is the store with its doors, if any is configured.
type Cache struct {
	heir    heir // in an upgrade, holds the cache in this one's place; nil = it is this one
	log     *slog.Logger
	store   *kvstore.Store    // nil = there is no listener
	resp    *resp.Server      // nil = there is no such door
	pod     *hyperpod.Server  // nil = there is no such door
	disk    *spill.Disk       // nil = nothing is spilled
	far     *far              // nil = there is no L2
	behind  []kvstore.Backing // the store's; nil = none
	meter   *chunks.Meter
	life    context.Context
	end     context.CancelFunc
	tending sync.WaitGroup
	closing sync.Once
}

// heir is a cache that opens later.
type heir interface {
	now() *Cache // nil = it is not open yet
	run() error
	setMembers(m Members)
	close()
}

// Stats has the counts of the store and its doors.
type Stats struct {
	Store    kvstore.Stats
	Tokens   chunks.Estimate // the room in tokens
	RESP     *resp.Stats     // nil = there is no such door
	HyperPod *hyperpod.Stats // nil = there is no such door
	Spill    *spill.Stats    // nil = nothing is spilled
	L2       *remote.Stats   // nil = there is none
	InL2     catalog.Stats   // the keys of L2 in this daemon's catalogue
	L2Bytes  int64           // of values that L2 keeps at most; 0 = not known
}

// open takes the memory and opens the listeners. If no listener is configured, it takes nothing.
func open(c Config) (*Cache, error) {
	k := &Cache{log: c.Log}
	k.life, k.end = context.WithCancel(context.Background())
	own := ""
	if c.HyperPod != "" {
		own = c.Segment
	}
	arena.RemoveOrphans(own, c.Log)
	if c.RESP == "" && c.HyperPod == "" {
		return k, nil
	}
	if has := SystemMemory(); has > 0 && c.MaxBytes > has {
		c.Log.Warn("the KV cache may grow beyond the memory of this machine, or of its container, and the system then ends "+
			"this process; lower kv_cache.max_bytes, or raise the limit", "max_bytes", c.MaxBytes, "memory_bytes", has)
	}
	sc := kvstore.Config{MaxBytes: c.MaxBytes, Policy: c.Policy, Log: c.Log}
	if c.Beliefs != nil {
		sc.Losses = kvstore.NewLosses(maxLosses)
	}
	if c.HyperPod != "" {
		sc.Segment, sc.Mode, sc.Quiet = c.Segment, c.Mode, hyperpod.MaxLease
	}
	if err := k.openSpill(c, &sc); err != nil {
		return nil, fmt.Errorf("kvcache: kv_cache.spill_dir: %w", err)
	}
	var err error
	k.far, err = openL2(k.life, c)
	if err != nil {
		k.Close()
		return nil, fmt.Errorf("kvcache: kv_cache.l2: %w", err)
	}
	if k.far != nil {
		listed := newCatalogued(k.far.remote, c.MaxBytes, sc.Losses)
		sc.Far = listed
		k.tending.Go(func() { listed.tend(k.life) })
	}
	k.measure(&c, &sc)
	store, err := kvstore.Open(sc)
	if err != nil {
		k.Close()
		return nil, fmt.Errorf("kvcache: %w", err)
	}
	k.store = store
	if err := k.openRESP(c); err != nil {
		k.Close()
		return nil, fmt.Errorf("kvcache: kv_cache.resp: %w", err)
	}
	if err := k.openHyperPod(c); err != nil {
		k.Close()
		return nil, fmt.Errorf("kvcache: kv_cache.hyperpod: %w", err)
	}
	k.far.run(&k.tending)
	k.tending.Go(func() { store.Run(k.life) })
	if c.Beliefs != nil {
		has := kvstore.NewView(store, kvstore.Everywhere).Has
		t := &lossReporter{losses: sc.Losses, has: has, to: c.Beliefs, log: c.Log}
		k.tending.Go(func() { t.run(k.life) })
	}
	k.tending.Go(func() { newVigil(c.Log).run(k.life, store.Stats, k.holds, k.far.stats) })
	return k, nil
}

// openSpill opens the folder and restores its values.
func (k *Cache) openSpill(c Config, sc *kvstore.Config) error {
	if c.SpillDir == "" {
		return nil
	}
	disk, err := spill.Open(spill.Config{Dir: c.SpillDir, MaxBytes: c.SpillBytes, MaxQueue: c.MaxBytes / 16,
		Losses: sc.Losses, Log: c.Log})
	if err != nil {
		return err
	}
	c.Log.Info("values of the KV cache are spilled", "folder", c.SpillDir, "spill_bytes", c.SpillBytes,
		"found", disk.Stats().Found)
	k.disk = disk
	sc.Disk = disk
	k.tending.Go(func() { disk.Run(k.life) })
	return nil
}

// openHyperPod binds the door after the segment is complete: a worker maps it at once.
func (k *Cache) openHyperPod(c Config) (err error) {
	if c.HyperPod == "" {
		return nil
	}
	k.pod, err = hyperpod.New(hyperpod.Config{Listen: c.HyperPod, Bind: c.Bind, Store: k.store, MaxConns: c.MaxConns,
		Log: c.Log})
	if err == nil {
		c.Log.Info("the KV cache is open", "hyperpod", k.pod.Addr(), "max_bytes", c.MaxBytes, "policy", c.Policy,
			"segment", c.Segment, "mode", c.Mode)
	}
	return err
}

func (k *Cache) openRESP(c Config) error {
	if c.RESP == "" {
		return nil
	}
	password, err := c.Password()
	if err != nil {
		return err
	}
	rc := resp.Config{Listen: c.RESP, Bind: c.Bind, Store: k.store, User: c.User, Password: password, MaxConns: c.MaxConns,
		Version: c.Version, Log: c.Log}
	if k.far.isPool() {
		rc.Peer = remote.PeerName
		rc.Pool = k.far
	}
	if c.Certificate != nil {
		rc.TLS = c.Certificate.TLS()
	}
	k.resp, err = resp.New(rc)
	if err != nil {
		return err
	}
	c.Log.Info("the KV cache is open", "resp", k.resp.Addr(), "max_bytes", c.MaxBytes, "policy", c.Policy,
		"tls", rc.TLS != nil, "password", password != "")
	return nil
}

// Run serves at the listeners until Close, or until one of them fails. If there is no listener, it just waits for
// Close.
func (k *Cache) Run() error {
	if k.heir != nil {
		return k.heir.run()
	}
	ended := make(chan error, 3)
	if k.resp != nil {
		go func() { ended <- k.resp.Run() }()
	}
	if k.pod != nil {
		go func() { ended <- k.pod.Run() }()
	}
	select {
	case err := <-ended:
		return err
	case <-k.life.Done():
		return nil
	}
}

// SetMembers replaces the members of a pool after a reload. Two goroutines must not call it at once.
func (k *Cache) SetMembers(m Members) {
	if k.heir != nil {
		k.heir.setMembers(m)
		return
	}
	k.far.setMembers(m)
}

// RESPAddr returns the address of the Redis listener, host:port; "" = there is none.
func (k *Cache) RESPAddr() string {
	k = k.now()
	if k == nil || k.resp == nil {
		return ""
	}
	return k.resp.Addr()
}

// HyperPodAddr returns the address of the HyperPod listener, host:port; "" = there is none.
func (k *Cache) HyperPodAddr() string {
	k = k.now()
	if k == nil || k.pod == nil {
		return ""
	}
	return k.pod.Addr()
}

// Policy returns the name of the eviction policy.
func (k *Cache) Policy() string { return k.now().store.Policy() }

// Stats returns the counts. It returns false if there is no cache.
func (k *Cache) Stats() (Stats, bool) {
	k = k.now()
	if k == nil || k.store == nil {
		return Stats{}, false
	}
	all := Stats{Store: k.store.Stats(), Tokens: k.holds(), L2: k.far.stats()}
	if k.resp != nil {
		s := k.resp.Stats()
		all.RESP = &s
	}
	if k.disk != nil {
		s := k.disk.Stats()
		all.Spill = &s
	}
	if k.pod != nil {
		s := k.pod.Stats()
		all.HyperPod = &s
	}
	for _, b := range k.behind {
		if c, ok := b.(*catalogued); ok {
			all.InL2, all.L2Bytes = c.keys.Stats(), c.MaxBytes()
		}
	}
	return all, true
}

const (
	lastCommand = 5 * time.Second // for clients to finish their command
	lastReader  = 5 * time.Second // for clients to finish a read
)

// Close closes the listeners and frees the memory. It does nothing for a nil Cache.
func (k *Cache) Close() {
	if k != nil {
		k.closing.Do(k.close)
	}
}

func (k *Cache) close() {
	if k.heir != nil {
		k.heir.close()
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), lastCommand)
	defer cancel()
	if k.resp != nil {
		k.resp.Close(ctx)
	}
	if k.pod != nil {
		k.pod.Close(ctx)
	}
	k.end()
	k.tending.Wait()
	if k.disk != nil {
		defer k.disk.Close()
	}
	if err := k.far.close(); err != nil {
		k.log.Warn("the connections to the KV cache's L2 did not close cleanly", "error", err)
	}
	if k.store == nil {
		return
	}
	if err := k.store.Close(lastReader); err != nil {
		k.log.Warn("the KV cache did not close cleanly", "error", err)
	}
}
