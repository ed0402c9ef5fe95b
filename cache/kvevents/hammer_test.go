package kvevents

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"testing"
)

// TestQueueHammer: what several readers put comes out whole, each reader's in its order, and nothing that was taken in
// is lost when the queue ends.
func TestQueueHammer(t *testing.T) {
	const readers, each = 4, 5000
	q, over := newQueue(), errors.New("over")
	var all sync.WaitGroup
	for r := range readers {
		all.Go(func() {
			topic := fmt.Append(nil, "reader ", r)
			for seq := range uint64(each) {
				payload := bytes.Repeat(binary.BigEndian.AppendUint64(nil, seq), 1+int(seq%9)*100) // some are not kept
				if !q.put(topic, seq, payload) {
					t.Errorf("message %d of %s is refused", seq, topic)
					return
				}
			}
		})
	}
	go func() { all.Wait(); q.end(over) }()
	next, m := map[string]uint64{}, new(message)
	for {
		ok, err := q.take(m)
		switch {
		case ok:
			if m.seq != next[m.topic] || binary.BigEndian.Uint64(m.payload) != m.seq || len(m.payload) != 8+int(m.seq%9)*800 {
				t.Fatalf("%s: message %d with %d bytes; want message %d", m.topic, m.seq, len(m.payload), next[m.topic])
			}
			next[m.topic]++
			if n := q.waiting(); n > queueMessages {
				t.Fatalf("%d messages wait", n)
			}
		case err == nil:
			<-q.filled
		default:
			for r := range readers {
				if n := next[fmt.Sprint("reader ", r)]; n != each {
					t.Errorf("reader %d: %d messages came; want %d", r, n, each)
				}
			}
			if len(next) != readers || !errors.Is(err, over) || q.put(nil, 0, nil) || q.bytes != 0 {
				t.Errorf("%d readers, %v, %d bytes", len(next), err, q.bytes)
			}
			return
		}
	}
}
