package lmcache

import (
	"encoding/hex"
	"fmt"
	"strings"
	"time"
)

// batch is a CacheEventBatch (lmcache/v1/mp_coordinator/api.py): changes of one kind in one tier of one server.
type batch struct {
	Instance    string `json:"instance_id"`
	Incarnation int64  `json:"incarnation"` // when the server started, in seconds
	Seq         int64  `json:"seq"`         // from 1 on in each incarnation
	Type        string `json:"event_type"`  // store, delete, access, config
	Tier        string `json:"tier"`        // l1, l2
	Backend     string `json:"backend"`
	Shared      bool   `json:"shared"`

	parts   []part   // what is left of its entries; a server sends shared behind them
	bad     error    // about the first entry that has no key
	sample  []uint32 // the tokens of one chunk, which show how the server hashes
	sampled uint64   // that chunk's key
}

// part is one chunk's part in an entry. It takes little, as a batch is kept until all of it has come.
type part struct {
	key         uint64 // as it is entered
	model       string
	world, rank uint8
}

// add records an entry. Parts of other object groups than the first come and go with it.
func (b *batch) add(e *entry) {
	k := &e.Key
	if k.Group != 0 {
		return
	}
	key, err := k.key()
	if err != nil {
		if b.bad == nil {
			b.bad = err
		}
		return
	}
	if b.sample == nil && e.Offset == 0 && len(e.Tokens) > 0 && len(e.Tokens) <= maxChunk {
		b.sample, b.sampled = e.Tokens, key
	}
	if n := len(b.parts); n > 0 && b.parts[n-1].model == k.Model {
		k.Model = b.parts[n-1].model // the same memory
	}
	b.parts = append(b.parts, part{key: k.spread(key), model: k.Model, world: uint8(k.world()), rank: uint8(k.rank())})
}

type entry struct {
	Key    objectKey `json:"key"`
	Tokens []uint32  `json:"token_ids"`
	Offset int       `json:"token_offset"`
}

// objectKey is the name of a chunk's part. KVRank is world_size<<24 | global_rank<<16 | local_world_size<<8 |
// local_rank.
type objectKey struct {
	Hash  string `json:"chunk_hash_hex"`
	Model string `json:"model_name"`
	Rank  uint32 `json:"kv_rank"`
	Group int    `json:"object_group_id"`
	Salt  string `json:"cache_salt"`
}

func (k *objectKey) world() int { return int(k.Rank >> 24) }
func (k *objectKey) rank() int  { return int(k.Rank >> 16 & 0xff) }

// key returns the chunk's key as workers' keys are, before it is spread by model and salt.
func (k *objectKey) key() (uint64, error) {
	var b [8]byte
	if len(k.Hash) < 16 || len(k.Hash) > 128 {
		return 0, fmt.Errorf("chunk_hash_hex of %d digits; want 16 to 128", len(k.Hash))
	}
	if _, err := hex.Decode(b[:], []byte(k.Hash[:16])); err != nil {
		return 0, fmt.Errorf("chunk_hash_hex %.16q: %w", k.Hash, err)
	}
	if w := k.world(); w < 1 || w > maxRanks || k.rank() >= w {
		return 0, fmt.Errorf("kv_rank %#x: rank %d of %d; at most %d are followed", k.Rank, k.rank(), w, maxRanks)
	}
	return foldDigest(b[:])
}

// spread returns the key that is entered.
func (k *objectKey) spread(key uint64) uint64 {
	salt := uint64(0)
	if k.Salt != "" {
		salt = nameHash(k.Salt)
	}
	return spread(key, nameHash(k.Model), salt)
}

// verdict is what became of a batch.
type verdict uint8

const (
	applied verdict = iota
	duplicate
	staleIncarnation
)

// enroll takes a server's registration and reports whether it was known.
func (f *fleet) enroll(id, ip, from string, now time.Time) (known bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	known = f.instances[id] != nil
	i, err := f.find(id, true, now)
	if err != nil {
		return known, err
	}
	i.heard, i.ip, i.from = now, ip, from
	i.judge()
	f.changed.Add(1)
	f.count.Registered++
	f.log.Info("Worker registered: "+id, "kind", "server", "address", ip)
	return known, nil
}

// alive takes a server's heartbeat. It reports false for one that has to register.
func (f *fleet) alive(id string, now time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	i := f.instances[id]
	if i == nil || !i.server || i.ip == "" {
		return false
	}
	i.heard = now
	i.judge()
	return true
}

// dismiss forgets a server. What it stored for all stays.
func (f *fleet) dismiss(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if i := f.instances[id]; i != nil && i.server {
		f.count.Deregistered++
		f.log.Info("LMCache server deregistered", "instance", id)
		f.dismissLocked(i)
	}
}

func (f *fleet) dismissLocked(i *instance) {
	i.live.Store(false)
	for _, r := range i.ranks {
		for _, s := range r.streams {
			f.dir.freeSeat(s.seat)
		}
	}
	f.remove(i)
}

// take applies a batch if its turn has come. It applies each batch once, and no batch of an older incarnation of the
// server.
func (f *fleet) take(b *batch, now time.Time) (verdict, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if b.Seq < 1 || b.Incarnation < 0 {
		return 0, fmt.Errorf("seq %d, incarnation %d; want 1 and 0 at least", b.Seq, b.Incarnation)
	}
	changes := b.Type == "store" || b.Type == "delete" // access, config and what later releases add hold no places
	if changes && b.bad != nil {
		return 0, b.bad
	}
	i, err := f.find(b.Instance, true, now)
	if err != nil {
		return 0, err
	}
	i.heard = now
	switch {
	case b.Incarnation < i.incarnation:
		f.count.StaleEvents++
		return staleIncarnation, nil
	case b.Incarnation > i.incarnation: // it has begun anew: its memory is empty, what it stored behind it is not
		f.clearTier(i, local)
		i.incarnation, i.seq = b.Incarnation, b.Seq-1
	case b.Seq <= i.seq:
		f.count.Duplicates++
		return duplicate, nil
	case b.Seq > i.seq+1:
		f.count.Gaps++
		f.clear(i)
		f.warn("gap"+i.id, "events of an LMCache server were lost: what it held so far is cleared", "instance", i.id,
			"expected", i.seq+1, "got", b.Seq, "remedy", "it sends each event once; look at its log for failed publishes")
	}
	i.seq = b.Seq
	f.count.Events++
	defer i.judge()
	for n := range b.parts {
		if !changes {
			break
		}
		if err := f.change(i, b, &b.parts[n], now); err != nil {
			f.clear(i) // a deletion may be among the rest
			return applied, err
		}
	}
	return applied, nil
}

// change enters or removes one chunk's part.
func (f *fleet) change(i *instance, b *batch, p *part, now time.Time) error {
	s, err := f.shelf(i, b, int(p.rank), now)
	if err != nil {
		return err
	}
	if b.Type == "delete" {
		f.count.Evicts++
		f.dir.evict(s.seat, p.key)
		return nil
	}
	model := nameHash(p.model)
	if known := i.model.Load(); known != 0 && known != model {
		f.warn("model"+i.id, "an LMCache server holds chunks of several models: only those of the last are counted",
			"instance", i.id, "model", p.model, "remedy", "run a server a model")
	}
	i.model.Store(model)
	i.need.Store(1<<p.world - 1)
	if i.variant.Load() == nil && len(b.sample) > 0 {
		i.variant.Store(f.explain(b.sample, b.sampled))
		b.sample = nil
	}
	f.count.Admits++
	f.admit(i, s.seat, p.key, now)
	return nil
}

// shelf returns where the batch's entries of a rank stand: with the server, or among what all servers share.
func (f *fleet) shelf(i *instance, b *batch, number int, now time.Time) (*stream, error) {
	t := remote
	switch {
	case b.Shared:
		t, i = shared, f.common
	case b.Tier == "l1":
		t = local
	}
	if len(b.Tier)+len(b.Backend) > maxName {
		return nil, fmt.Errorf("a backend's name of %d bytes; at most %d", len(b.Backend), maxName)
	}
	r, err := f.rankOf(i, number, now)
	if err != nil {
		return nil, err
	}
	return f.streamOf(i, r, b.Tier+"/"+b.Backend, t)
}

func (f *fleet) clearTier(i *instance, t tier) {
	for _, r := range i.ranks {
		for _, s := range r.streams {
			if s.seat.tier == t {
				f.dir.clear(s.seat)
			}
		}
	}
}

// explain returns the variant by which the tokens have the key, or nil.
func (f *fleet) explain(tokens []uint32, key uint64) *Variant {
	l := learner{}
	for _, v := range forms(f.seed) {
		v.Chunk = len(tokens)
		l.forms = append(l.forms, v)
	}
	return l.find([][]uint32{tokens}, func(_ *Variant, k uint64) bool { return k == key })
}

// serverSums returns the chunk hashes of a prompt as blake3 servers compute them, with the chunk size of one that is
// known.
func (f *fleet) serverSums(tokens []uint32) (sums [][]byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, i := range f.instances {
		v := i.variant.Load()
		if v == nil || !i.server {
			continue
		}
		h, err := newHasher(*v)
		if err != nil {
			return nil
		}
		for ; len(tokens) >= v.Chunk; tokens = tokens[v.Chunk:] {
			h.next(tokens[:v.Chunk])
			sums = append(sums, h.at.sum())
		}
		return sums
	}
	return nil
}

// placement is where a chunk's part is, as /directory/lookup answers.
type placement struct {
	Instance    string `json:"instance_id"`
	Incarnation int64  `json:"incarnation"`
	Tier        string `json:"tier"`
	Backend     string `json:"backend"`
	Size        int    `json:"size_bytes"` // not kept
	Shared      bool   `json:"shared"`
}

// placements returns who holds a key at a rank.
func (f *fleet) placements(key uint64, rank int) []placement {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := []placement{}
	for _, s := range f.dir.seatsOf(key) {
		if int(s.rank) == rank && s.instance.server {
			tier, backend, _ := strings.Cut(s.location, "/")
			all = append(all, placement{Instance: s.instance.id, Incarnation: s.instance.incarnation, Tier: tier,
				Backend: backend, Shared: s.tier == shared})
		}
	}
	return all
}
