package bugs

import (
	"context"
	"encoding/binary"
	"fmt"
	"strings"
	"time"

	"github.com/warmpath/warmpath/cache/zmtp"
	"github.com/warmpath/warmpath/daemon/lab/porttest"
	"github.com/warmpath/warmpath/daemon/lab/vllmsim/msgpack"
	"github.com/warmpath/warmpath/testdata/rig"
	"github.com/warmpath/warmpath/testdata/rig/wire"
)

// Two workers of one host dial the router and name themselves by their address, in one spelling or another.
var topics = []wallCase{
	{"a-topic-names-its-worker-by-host-and-port", topic("kv@%s@sim")},
	{"a-topic-names-its-worker-by-url", topic("kv@http://%s@sim")},
	{"a-topic-names-its-worker-by-a-mapped-address", topic("kv@[::ffff:127.0.0.1]:%.0s%s@sim")},
	{"a-topic-names-its-worker-by-id", topicByID},
}

func topicByID(l *lab) (string, bool) {
	return events(l, func(n int, _ string) string { return fmt.Sprintf("kv@w%d@sim", n) })
}

// topic has each worker's host:port stand in the topic. A pattern with two verbs has its port alone.
func topic(pattern string) func(*lab) (string, bool) {
	return func(l *lab) (string, bool) {
		return events(l, func(_ int, addr string) string {
			if strings.Count(pattern, "%") == 2 {
				return strings.ReplaceAll(fmt.Sprintf(pattern, "", addr), local+":", "")
			}
			return fmt.Sprintf(pattern, addr)
		})
	}
}

// events has two workers publish 64 tokens each and asks for a prompt of these tokens.
func events(l *lab, topicOf func(n int, addr string) string) (string, bool) {
	engines := l.engines(2, nil)
	door := "tcp://" + porttest.Address(l.t)
	r := l.routerWith(rig.Router{Server: fmt.Sprintf("kv_events_listen = %q\n", door), Pool: "strategy = \"kvaware\"\n"}, engines...)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	for n, e := range engines {
		c, err := zmtp.Dial(ctx, door, zmtp.Config{Kind: zmtp.PUB})
		if err != nil {
			l.t.Fatal(err)
		}
		defer c.Close()
		if _, err := c.Recv(); err != nil { // the subscription
			l.t.Fatal(err)
		}
		if err := c.Send([]byte(topicOf(n, e.Addr())), make([]byte, 8), storedTokens(n)); err != nil {
			l.t.Fatal(err)
		}
	}
	time.Sleep(1500 * time.Millisecond)
	known := 0
	for n := range engines {
		a := r.post("/v1/completions", fmt.Sprintf(`{"model":"sim","prompt":[%s7],"max_tokens":1}`, tokensOf(n)),
			"X-Warmpath-Explain: json")
		if strings.Contains(decisionOf(a, n), `"gpu_blocks":64`) {
			known++
		}
	}
	return fmt.Sprintf("tokens of %d of 2 workers known", known), known == 2
}

// decisionOf is the row of worker wN in the decision.
func decisionOf(a wire.Answer, n int) string {
	for row := range strings.SplitSeq(field(a, "x-warmpath-decision"), "}") {
		if strings.Contains(row, fmt.Sprintf(`"id":"w%d"`, n)) || strings.Contains(row, fmt.Sprintf(`"worker":"w%d"`, n)) &&
			strings.Contains(row, "gpu_blocks") {
			return row
		}
	}
	return ""
}

const tokens = 64 // of each worker, in four blocks

func tokensOf(n int) string {
	var b strings.Builder
	for i := range tokens {
		fmt.Fprintf(&b, "%d,", n*1000+i)
	}
	return b.String()
}

// storedTokens is a batch with one BlockStored, as vLLM 0.26 and later send it.
func storedTokens(n int) []byte {
	b := msgpack.AppendArray(nil, 3)
	b = msgpack.AppendFloat(b, float64(time.Now().Unix()))
	b = msgpack.AppendArray(b, 1)
	b = msgpack.AppendMap(b, 7)
	b = msgpack.AppendString(msgpack.AppendString(b, "type"), "BlockStored")
	b = msgpack.AppendArray(msgpack.AppendString(b, "block_hashes"), tokens/16)
	for i := range tokens / 16 {
		b = msgpack.AppendUint(b, binary.BigEndian.Uint64([]byte{1, 2, 3, 4, 5, 6, byte(n), byte(i)}))
	}
	b = msgpack.AppendNil(msgpack.AppendString(b, "parent_block_hash"))
	b = msgpack.AppendArray(msgpack.AppendString(b, "token_ids"), tokens)
	for i := range tokens {
		b = msgpack.AppendInt(b, int64(n*1000+i))
	}
	b = msgpack.AppendInt(msgpack.AppendString(b, "block_size"), 16)
	b = msgpack.AppendNil(msgpack.AppendString(b, "lora_id"))
	b = msgpack.AppendString(msgpack.AppendString(b, "medium"), "GPU")
	return msgpack.AppendInt(b, 0)
}
