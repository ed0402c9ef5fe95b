package lmcache

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
)

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
