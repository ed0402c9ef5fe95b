package lmcache

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"github.com/tinylib/msgp/msgp"
)

// recorded is one frame of a recording.
type recorded struct {
	T       float64
	Socket  string
	Conn    int
	From    string
	ZMTP    string
	More    bool
	Hex     string
	Decoded any
}

// frames calls f with the frames that one side sent on a socket.
func frames(t testing.TB, release, socket, from string, f func(frame []byte, decoded map[string]any)) {
	file := "testdata/" + release + "/controller-" + socket + ".jsonl"
	lines(t, file, func(r recorded) {
		if r.ZMTP != "msg" || r.From != from || r.Hex == "" {
			return
		}
		b, err := hex.DecodeString(r.Hex)
		if err != nil {
			t.Fatal(err)
		}
		decoded, _ := r.Decoded.(map[string]any)
		f(b, decoded)
	})
}

var releases = []string{"0.3.9.post2", "0.4.3", "0.5.6"}

// What the workers of the three releases sent is decoded to what stands beside it in the recording.
func TestRecordedMessages(t *testing.T) {
	seen := map[string]int{}
	check := func(release, socket string) {
		m := &message{}
		frames(t, release, socket, "worker", func(frame []byte, want map[string]any) {
			if err := m.decode(frame); err != nil {
				t.Errorf("%s %s: %v: %v", release, socket, want["type"], err)
				return
			}
			seen[fmt.Sprint(want["type"])]++
			if m.kind != kinds[fmt.Sprint(want["type"])] || m.kind == unknown || m.instance != want["instance_id"] ||
				fmt.Sprint(m.worker) != fmt.Sprint(want["worker_id"]) {
				t.Errorf("%s: %+v; want %v", release, m, want)
			}
			for field, got := range map[string]any{"ip": m.ip, "port": m.port, "location": m.location, "sync_id": m.sync,
				"batch_id": m.batch, "batch_count": m.batches, "total_keys": m.total, "actual_total_keys": m.total,
				"distributed_url": m.peerURL} {
				if w, ok := want[field]; ok && fmt.Sprint(w) != fmt.Sprint(got) {
					t.Errorf("%s: %s is %v; want %v", release, field, got, w)
				}
			}
			if ops, ok := want["operations"].([]any); ok && len(ops) != len(m.ops) {
				t.Errorf("%d operations; want %d", len(m.ops), len(ops))
			}
		})
	}
	for _, release := range releases {
		check(release, "pull")
		if release != "0.3.9.post2" {
			check(release, "reply")
			check(release, "heartbeat")
		}
	}
	for name := range kinds {
		if seen[name] == 0 {
			t.Errorf("no recording has a %s", name)
		}
	}
}

// Every answer is, byte for byte, what the controllers of 0.4.3 and 0.5.6 answered.
func TestRecordedAnswers(t *testing.T) {
	encode := func(want map[string]any) []byte {
		sync, _ := want["sync_id"].(string)
		switch want["type"] {
		case "RegisterRetMsg":
			url, _ := want["extra_config"].(map[string]any)["heartbeat_url"].(string)
			return registered(url)
		case "HeartbeatRetMsg":
			reason := ""
			for _, c := range want["commands"].([]any) {
				reason = c.(map[string]any)["reason"].(string)
			}
			return beaten(reason)
		case "FullSyncStartRetMsg":
			refusal, _ := want["error_msg"].(string)
			return started(sync, refusal)
		case "FullSyncStatusRetMsg":
			p := progress{complete: want["is_complete"].(bool), share: want["global_progress"].(float64)}
			for _, n := range want["missing_batches"].([]any) {
				p.missing = append(p.missing, int(n.(float64)))
			}
			return p.answer(sync)
		case "BatchedP2PLookupRetMsg":
			of := want["layout_info"].([]any)[0].([]any)
			return found{instance: of[0].(string), location: of[1].(string), chunks: int(of[2].(float64)), peerURL: of[3].(string)}.answer()
		case "ErrorMsg":
			return refused(want["error"].(string))
		}
		return nil
	}
	n := 0
	check := func(frame []byte, want map[string]any) {
		got := encode(want)
		if got == nil {
			return
		}
		n++
		if !bytes.Equal(got, frame) {
			t.Errorf("%v\nis  %x;\nwant %x", want, got, frame)
		}
	}
	for _, release := range releases[1:] {
		frames(t, release, "reply", "controller", check)
		frames(t, release, "heartbeat", "controller", check)
	}
	lines(t, "testdata/0.5.6/lookup-messages.jsonl", func(l struct {
		Hex     string
		Decoded map[string]any
	}) {
		b, _ := hex.DecodeString(l.Hex)
		check(b, l.Decoded)
	})
	if n < 15 {
		t.Errorf("only %d answers were compared", n)
	}
}

func pack(fields ...any) []byte {
	b := msgp.AppendMapHeader(nil, uint32(len(fields)/2))
	for _, f := range fields {
		b, _ = msgp.AppendIntf(b, f)
	}
	return b
}

func TestDecode(t *testing.T) {
	digest := bytes.Repeat([]byte{0xfe}, 32)
	f := func(frame []byte, ok func(m *message) bool) {
		t.Helper()
		m := &message{instance: "before", from: "10.0.0.1"}
		if err := m.decode(frame); err != nil {
			t.Errorf("%.60q: %v", frame, err)
		} else if !ok(m) {
			t.Errorf("%.60q gives %+v", frame, m)
		}
	}
	op := func(kind string, key any) map[string]any {
		return map[string]any{"op_type": kind, "key": key, "seq_num": 7}
	}
	f(pack("worker_id", 3, "operations", []any{op("admit", int64(-5)), op("evict", uint64(1<<63)), op("admit", digest)},
		"location", "L", "new", map[string]any{"x": []any{1, nil}}, "instance_id", "i", "type", "BatchedKVOperationMsg"),
		func(m *message) bool {
			return m.kind == operations && m.instance == "i" && m.worker == 3 && len(m.ops) == 3 && m.from == "10.0.0.1" &&
				m.ops[0] == operation{key: ^uint64(4), seq: 7} && m.ops[1] == operation{key: 1 << 63, seq: 7, evict: true} &&
				m.ops[2].key == 0xfefefefefefefefe
		})
	f(pack("key", 9, "type", "KVEvictMsg"), func(m *message) bool {
		return len(m.ops) == 1 && m.ops[0] == operation{key: 9, seq: noSeq, evict: true} && m.instance == "before"
	})
	f(pack("type", "LookupMsg", "tokens", []any{1}), func(m *message) bool { return m.kind == unknown && m.name == "LookupMsg" })
	f(pack("type", "RegisterMsg", "peer_init_url", nil), func(m *message) bool { return m.kind == register && m.peerURL == "" })
	f([]byte(`{"type":"FullSyncBatchMsg","instance_id":"j","worker_id":1,"location":"L","sync_id":"s","batch_id":2,
		"keys":[-1,18446744073709551615,"/v7+/v7+/v7+/g=="],"more":{"a":[1]}}`), func(m *message) bool {
		return m.kind == syncBatch && m.instance == "j" && m.batch == 2 && len(m.keys) == 3 && m.keys[0] == ^uint64(0) &&
			m.keys[1] == ^uint64(0) && m.keys[2] == 0xfefefefefefefefe
	})
	f([]byte(`{"type":"BatchedKVOperationMsg","operations":[{"op_type":"evict","key":-3,"seq_num":4}]}`), func(m *message) bool {
		return len(m.ops) == 1 && m.ops[0] == operation{key: ^uint64(2), seq: 4, evict: true}
	})
}

func TestDecodeRefuses(t *testing.T) {
	f := func(frame []byte, want string) {
		t.Helper()
		m := &message{}
		if err := m.decode(frame); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q gives %v; want %q", frame, err, want)
		}
	}
	f(nil, "not a map")
	f([]byte("\x93\x01\x02\x03"), "not a map")
	f([]byte{0xdf, 0xff, 0xff, 0xff, 0xff}, "not a map") // four billion fields
	f(pack("instance_id", strings.Repeat("x", maxName+1)), "at most 256")
	f(pack("instance_id", 7), "instance_id")
	f(pack("worker_id", -1), "worker_id")
	f(pack("worker_id", 1<<40), "worker_id")
	f(pack("keys", []any{"x"}), "keys")
	f(pack("key", []byte("short")), "8 to 64")
	f(pack("operations", []any{1}), "operations")
	f(pack("operations", []any{map[string]any{"op_type": "move"}}), "admit or evict")
	huge := append(msgp.AppendString(msgp.AppendMapHeader(nil, 1), "keys"), 0xdd, 0xff, 0xff, 0xff, 0xff)
	f(huge, "over")
	f(append(msgp.AppendString(msgp.AppendMapHeader(nil, 1), "x"), bytes.Repeat([]byte{0x91}, 1<<20)...), "not a map") // a bomb
	f([]byte(`{"type":`), "JSON")
	f([]byte(`{"key":"AA=="}`), "8 to 64")
	f([]byte(`{"instance_id":"`+strings.Repeat("x", maxName+1)+`"}`), "at most 256")
}

// A batch of operations costs no allocation once its buffers have grown.
func TestDecodeDoesNotAllocate(t *testing.T) {
	var batch []byte
	frames(t, "0.5.6", "pull", "worker", func(frame []byte, decoded map[string]any) {
		if batch == nil && decoded["type"] == "BatchedKVOperationMsg" {
			batch = frame
		}
	})
	m := &message{}
	if n := testing.AllocsPerRun(100, func() {
		if err := m.decode(batch); err != nil {
			t.Fatal(err)
		}
	}); n > 1 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzDecode(f *testing.F) {
	for _, release := range releases {
		frames(f, release, "pull", "worker", func(b []byte, _ map[string]any) { f.Add(b) })
		if release != "0.3.9.post2" {
			frames(f, release, "reply", "worker", func(b []byte, _ map[string]any) { f.Add(b) })
		}
	}
	f.Add([]byte(`{"type":"FullSyncBatchMsg","keys":[-1,"/v7+/v7+/v7+/g=="]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		m := &message{}
		if err := m.decode(b); err != nil {
			return
		}
		if len(m.ops) > maxKeys || len(m.keys) > maxKeys || len(m.instance) > maxName || m.worker < 0 {
			t.Errorf("over the limits: %d operations, %d keys", len(m.ops), len(m.keys))
		}
		if len(m.keys)+len(m.ops) > len(b) {
			t.Errorf("%d keys and operations of %d bytes", len(m.keys)+len(m.ops), len(b))
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	ops := make([]any, 256)
	for n := range ops {
		ops[n] = map[string]any{"op_type": "admit", "key": uint64(n) << 50, "seq_num": n}
	}
	frame := pack("type", "BatchedKVOperationMsg", "instance_id", "i", "worker_id", 0, "location", "LocalCPUBackend", "operations", ops)
	m := &message{}
	b.ReportAllocs()
	for b.Loop() {
		if err := m.decode(frame); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)*256/b.Elapsed().Seconds(), "operations/s")
}
