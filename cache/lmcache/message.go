package lmcache

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/tinylib/msgp/msgp"
)

// kind is what a message is: the name of its class in lmcache/v1/cache_controller/message.py.
type kind uint8

const (
	unknown kind = iota
	register
	deregister
	heartbeat
	operations
	admit
	evict
	syncStart
	syncBatch
	syncEnd
	syncStatus
	peerLookup
)

var kinds = map[string]kind{
	"RegisterMsg": register, "DeRegisterMsg": deregister, "HeartbeatMsg": heartbeat,
	"BatchedKVOperationMsg": operations, "KVAdmitMsg": admit, "KVEvictMsg": evict,
	"FullSyncStartMsg": syncStart, "FullSyncBatchMsg": syncBatch, "FullSyncEndMsg": syncEnd,
	"FullSyncStatusMsg": syncStatus, "BatchedP2PLookupMsg": peerLookup,
}

// message is one message of a worker, of any kind. Fields that its kind does not have are zero. One message is decoded
// into again and again, so that a batch of operations allocates nothing.
type message struct {
	kind     kind
	from     string // the host of the connection, and its number: not part of the message
	conn     uint64
	name     string // of an unknown kind
	instance string // instance_id
	worker   int    // worker_id, the rank within the instance
	ip       string
	port     int
	peerURL  string // peer_init_url, up to 0.3.9 distributed_url
	location string
	sync     string      // sync_id
	batch    int         // batch_id
	total    int         // total_keys or actual_total_keys
	batches  int         // batch_count
	ops      []operation // of a batch, or the one of KVAdmitMsg and KVEvictMsg
	keys     []uint64    // keys or hashes
}

// operation is the admission or the eviction of one chunk.
type operation struct {
	key   uint64
	seq   int64 // noSeq if the release has none
	evict bool
}

const noSeq = -1

// The limits of a message. LMCache sends at most 2,000 keys in a batch of a full sync unless configured otherwise, and
// as many operations as have gathered in some milliseconds.
const (
	maxKeys = 1 << 18 // keys or operations of one message
	maxType = 64      // bytes of a class name
	maxJSON = 64 << 10
)

var (
	errJSON = fmt.Errorf("a message in JSON of over %d bytes; LMCache sends msgpack", maxJSON)
	errMany = fmt.Errorf("over %d keys or operations in one message", maxKeys)
)

// decode reads a frame: a msgpack map, or JSON if it begins with a brace. It skips fields that it does not know, so a
// field that a later release adds does no harm. m is undefined after an error.
func (m *message) decode(frame []byte) error {
	*m = message{from: m.from, conn: m.conn, instance: m.instance, location: m.location, ip: m.ip,
		ops: m.ops[:0], keys: m.keys[:0]}
	if len(frame) > 0 && frame[0] == '{' {
		if len(frame) > maxJSON {
			return errJSON
		}
		return m.decodeJSON(frame)
	}
	n, b, err := msgp.ReadMapHeaderBytes(frame)
	if err != nil {
		return errShape
	}
	op := operation{seq: noSeq}
	for range n {
		var field []byte
		field, b, err = msgp.ReadMapKeyZC(b)
		if err != nil {
			return errShape
		}
		b, err = m.field(field, b, &op)
		if err != nil {
			return fmt.Errorf("field %.32q: %w", field, err)
		}
	}
	m.close(op)
	return nil
}

// setKind takes the value of "type".
func (m *message) setKind(name []byte) {
	m.kind = kinds[string(name)]
	if m.kind == unknown {
		m.name = string(name[:min(len(name), maxType)])
	}
}

// close completes the fields that depend on the kind, whose field may have come last.
func (m *message) close(op operation) {
	if m.kind == admit || m.kind == evict {
		op.evict = m.kind == evict
		m.ops = append(m.ops[:0], operation{key: op.key, seq: noSeq, evict: op.evict}) // their seq_num is always 0
	}
}

// field reads one field's value from b and returns what follows.
func (m *message) field(name, b []byte, op *operation) (rest []byte, err error) {
	switch string(name) {
	case "type":
		var s []byte
		s, rest, err = readName(b)
		m.setKind(s)
	case "instance_id":
		rest, err = readInto(&m.instance, b)
	case "ip":
		rest, err = readInto(&m.ip, b)
	case "location":
		rest, err = readInto(&m.location, b)
	case "peer_init_url", "distributed_url":
		rest, err = readInto(&m.peerURL, b)
	case "sync_id":
		rest, err = readInto(&m.sync, b)
	case "worker_id":
		m.worker, rest, err = readCount(b)
	case "port":
		m.port, rest, err = readCount(b)
	case "batch_id":
		m.batch, rest, err = readCount(b)
	case "batch_count":
		m.batches, rest, err = readCount(b)
	case "total_keys", "actual_total_keys":
		m.total, rest, err = readCount(b)
	case "key":
		op.key, rest, err = readKey(b)
	case "keys", "hashes":
		rest, err = m.readKeys(b)
	case "operations":
		rest, err = m.readOperations(b)
	default:
		return skip(b)
	}
	return rest, err
}

func (m *message) readKeys(b []byte) ([]byte, error) {
	n, b, err := msgp.ReadArrayHeaderBytes(b)
	if err != nil {
		return nil, err
	}
	if n > maxKeys {
		return nil, errMany
	}
	m.keys = m.keys[:0]
	for range n {
		var k uint64
		k, b, err = readKey(b)
		if err != nil {
			return nil, err
		}
		m.keys = append(m.keys, k)
	}
	return b, nil
}

func (m *message) readOperations(b []byte) ([]byte, error) {
	n, b, err := msgp.ReadArrayHeaderBytes(b)
	if err != nil {
		return nil, err
	}
	if n > maxKeys {
		return nil, errMany
	}
	m.ops = m.ops[:0]
	for range n {
		op := operation{seq: noSeq}
		b, err = op.read(b)
		if err != nil {
			return nil, err
		}
		m.ops = append(m.ops, op)
	}
	return b, nil
}

func (o *operation) read(b []byte) ([]byte, error) {
	n, b, err := msgp.ReadMapHeaderBytes(b)
	if err != nil {
		return nil, errShape
	}
	for range n {
		var field, s []byte
		field, b, err = msgp.ReadMapKeyZC(b)
		if err != nil {
			return nil, errShape
		}
		switch string(field) {
		case "op_type":
			s, b, err = msgp.ReadStringZC(b)
			if err == nil {
				err = o.setType(s)
			}
		case "key":
			o.key, b, err = readKey(b)
		case "seq_num":
			o.seq, b, err = msgp.ReadInt64Bytes(b)
		default:
			b, err = skip(b)
		}
		if err != nil {
			return nil, err
		}
	}
	return b, nil
}

func (o *operation) setType(s []byte) error {
	switch string(s) {
	case "admit":
		o.evict = false
	case "evict":
		o.evict = true
	default:
		return fmt.Errorf("op_type %.16q; want admit or evict", string(s))
	}
	return nil
}

// jsonKey is a key in JSON: an int, or a digest in base64, as msgspec writes bytes.
type jsonKey uint64

// UnmarshalJSON implements json.Unmarshaler.
func (k *jsonKey) UnmarshalJSON(b []byte) error {
	text := string(b)
	if quoted, err := strconv.Unquote(text); err == nil {
		digest, err := base64.StdEncoding.DecodeString(quoted)
		if err != nil {
			return err
		}
		folded, err := foldDigest(digest)
		*k = jsonKey(folded)
		return err
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		*k = jsonKey(n)
		return nil
	}
	n, err := strconv.ParseUint(text, 10, 64)
	*k = jsonKey(n)
	return err
}

func (m *message) decodeJSON(frame []byte) error {
	var j struct {
		Type           string    `json:"type"`
		Instance       string    `json:"instance_id"`
		Worker         uint32    `json:"worker_id"`
		IP             string    `json:"ip"`
		Port           uint16    `json:"port"`
		PeerURL        string    `json:"peer_init_url"`
		DistributedURL string    `json:"distributed_url"`
		Location       string    `json:"location"`
		Sync           string    `json:"sync_id"`
		Batch          uint16    `json:"batch_id"`
		Total          uint32    `json:"total_keys"`
		ActualTotal    uint32    `json:"actual_total_keys"`
		Batches        uint32    `json:"batch_count"`
		Key            jsonKey   `json:"key"`
		Keys           []jsonKey `json:"keys"`
		Hashes         []jsonKey `json:"hashes"`
		Operations     []struct {
			Type string  `json:"op_type"`
			Key  jsonKey `json:"key"`
			Seq  *int64  `json:"seq_num"`
		} `json:"operations"`
	}
	if err := json.Unmarshal(frame, &j); err != nil {
		return err
	}
	for _, s := range []string{j.Instance, j.IP, j.PeerURL, j.DistributedURL, j.Location, j.Sync} {
		if len(s) > maxName {
			return fmt.Errorf("a name of %d bytes; at most %d", len(s), maxName)
		}
	}
	m.instance, m.ip, m.location, m.sync = j.Instance, j.IP, j.Location, j.Sync
	m.peerURL = j.PeerURL + j.DistributedURL
	m.worker, m.port, m.batch, m.batches = int(j.Worker), int(j.Port), int(j.Batch), int(j.Batches)
	m.total = int(max(j.Total, j.ActualTotal))
	if max(len(j.Keys), len(j.Hashes), len(j.Operations)) > maxKeys {
		return errMany
	}
	for _, k := range append(j.Keys, j.Hashes...) {
		m.keys = append(m.keys, uint64(k))
	}
	for _, o := range j.Operations {
		op := operation{key: uint64(o.Key), seq: noSeq}
		if o.Seq != nil {
			op.seq = *o.Seq
		}
		if err := op.setType([]byte(o.Type)); err != nil {
			return err
		}
		m.ops = append(m.ops, op)
	}
	m.setKind([]byte(j.Type))
	m.close(operation{key: uint64(j.Key)})
	return nil
}
