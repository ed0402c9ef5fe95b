package sdk

import (
	"math/bits"

	"github.com/warmpath/warmpath/sdk/abi"
)

// labels remembers the names of the label bits. They change only with the configuration, so that a pick asks for them
// seldom.
type labels struct {
	names []string // as tier=batch, by bit
	epoch uint32
	read  bool
}

// of returns the names as of the request whose header is h.
func (l *labels) of(h *abi.Header) []string {
	if l.read && l.epoch == h.LabelsEpoch && len(l.names) == int(h.Labels) {
		return l.names
	}
	*l = labels{epoch: h.LabelsEpoch, read: true}
	for bit := range min(h.Labels, 64) {
		l.names = append(l.names, text(abi.StrLabel, int32(bit)))
	}
	return l.names
}

// Labeled returns the bit of [Worker].Labels for key = value, 0 if no worker of the pool has that label. Ask once, then
// look at all workers:
//
//	batch := r.Labeled("tier", "batch")
//	for i := range workers {
//		if workers[i].Labels&batch != 0 { ... }
//	}
func (r *Request) Labeled(key, value string) uint64 {
	for bit, name := range r.labels.of(r.Header) {
		if v, ok := valueOf(name, key); ok && v == value {
			return 1 << bit
		}
	}
	return 0
}

// Label returns the value of w's label key, "" without it.
func (r *Request) Label(w *Worker, key string) string {
	names := r.labels.of(r.Header)
	for left := w.Labels; left != 0; left &= left - 1 {
		if bit := bits.TrailingZeros64(left); bit < len(names) {
			if v, ok := valueOf(names[bit], key); ok {
				return v
			}
		}
	}
	return ""
}

// valueOf cuts "key=" off a label.
func valueOf(label, key string) (string, bool) {
	if n := len(key); len(label) > n && label[n] == '=' && label[:n] == key {
		return label[n+1:], true
	}
	return "", false
}
