package lmworker

import (
	"github.com/warmpath/warmpath/daemon/lab/vllmsim/msgpack"
)

// location is what LMCache calls the CPU memory of a worker.
const location = "LocalCPUBackend"

// op is one chunk admitted or evicted.
type op struct {
	evict bool
	key   int64
}

// name returns op_type.
func (o op) name() string {
	if o.evict {
		return "evict"
	}
	return "admit"
}

// encoder writes a message, which is a map whose first pair is its type.
type encoder struct{ b []byte }

// message begins a message of so many pairs behind its type.
func (c *Config) message(kind string, pairs int) *encoder {
	e := &encoder{b: msgpack.AppendMap(nil, pairs+1)}
	return e.text("type", kind)
}

// of begins a message that names the worker, and has so many pairs more.
func (c *Config) of(kind string, pairs int) *encoder {
	return c.message(kind, pairs+2).text("instance_id", c.Instance).number("worker_id", 0)
}

func (e *encoder) key(name string) *encoder {
	e.b = msgpack.AppendString(e.b, name)
	return e
}

func (e *encoder) text(name, v string) *encoder {
	e.key(name)
	e.b = msgpack.AppendString(e.b, v)
	return e
}

func (e *encoder) number(name string, v int64) *encoder {
	e.key(name)
	e.b = msgpack.AppendInt(e.b, v)
	return e
}

func (e *encoder) null(name string) *encoder {
	e.key(name)
	e.b = msgpack.AppendNil(e.b)
	return e
}

func (e *encoder) list(name string, n int) *encoder {
	e.key(name)
	e.b = msgpack.AppendArray(e.b, n)
	return e
}

// peer begins RegisterMsg, HeartbeatMsg and DeRegisterMsg, with so many pairs more.
func (c *Config) peer(kind string, pairs int) *encoder {
	return c.of(kind, pairs+2).text("ip", c.IP).number("port", int64(c.Port))
}

// alive returns a RegisterMsg or a HeartbeatMsg.
func (c *Config) alive(kind string) []byte {
	if c.Release == Release039 {
		return c.peer(kind, 1).text("distributed_url", c.IP+":18999").b
	}
	return c.peer(kind, 1).null("peer_init_url").b
}

func (c *Config) deregister() []byte { return c.peer("DeRegisterMsg", 0).b }

// single returns one operation in the form of 0.3.9.
func (c *Config) single(o op) []byte {
	kind := "KVAdmitMsg"
	if o.evict {
		kind = "KVEvictMsg"
	}
	return c.of(kind, 2).number("key", o.key).text("location", location).b
}

// batch returns operations of which the first has the number seq.
func (c *Config) batch(ops []op, seq int64) []byte {
	e := c.of("BatchedKVOperationMsg", 2).text("location", location).list("operations", len(ops))
	for i, o := range ops {
		e.b = msgpack.AppendMap(e.b, 3)
		e.text("op_type", o.name()).number("key", o.key).number("seq_num", seq+int64(i))
	}
	return e.b
}

// sync begins a message of a full sync, with so many pairs more.
func (c *Config) sync(kind, id string, pairs int) *encoder {
	return c.of(kind, pairs+2).text("location", location).text("sync_id", id)
}

func (c *Config) syncStart(id string, keys, batches int) []byte {
	return c.sync("FullSyncStartMsg", id, 2).number("total_keys", int64(keys)).number("batch_count", int64(batches)).b
}

func (c *Config) syncBatch(id string, n int, keys []int64) []byte {
	e := c.sync("FullSyncBatchMsg", id, 2).number("batch_id", int64(n)).list("keys", len(keys))
	for _, k := range keys {
		e.b = msgpack.AppendInt(e.b, k)
	}
	return e.b
}

func (c *Config) syncEnd(id string, keys int) []byte {
	return c.sync("FullSyncEndMsg", id, 1).number("actual_total_keys", int64(keys)).b
}

func (c *Config) syncStatus(id string) []byte {
	return c.of("FullSyncStatusMsg", 1).text("sync_id", id).b
}
