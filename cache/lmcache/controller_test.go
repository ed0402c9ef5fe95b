package lmcache

import (
	"bytes"
	"context"
	"encoding/hex"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/cache/zmtp"
	"github.com/warmpath/warmpath/daemon/lab/logtest"
	"github.com/warmpath/warmpath/daemon/lab/waittest"
)

var quiet = slog.New(slog.DiscardHandler)

// start runs a controller on free ports.
func start(t *testing.T, c Config) (*Controller, *logtest.Log) {
	t.Helper()
	out := &logtest.Log{}
	c.Log = slog.New(slog.NewTextHandler(out, nil))
	c.Pull, c.Reply, c.Heartbeat, c.Coordinator = "127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0"
	k, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.Close)
	return k, out
}

func dial(t *testing.T, addr string, kind zmtp.Kind) *zmtp.Conn {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	c, err := zmtp.Dial(ctx, "tcp://"+addr, zmtp.Config{Kind: kind})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// ask sends a request as a DEALER or REQ does and returns the answer.
func ask(t *testing.T, c *zmtp.Conn, frame []byte) []byte {
	t.Helper()
	if err := c.Send(nil, frame); err != nil {
		t.Fatal(err)
	}
	frames, err := c.Recv()
	if err != nil {
		t.Fatal(err)
	}
	if len(frames) != 2 || len(frames[0]) != 0 {
		t.Fatalf("the answer is %q", frames)
	}
	return bytes.Clone(frames[1])
}

// one returns the stats of the only instance.
func one(t *testing.T, k *Controller) InstanceStats {
	t.Helper()
	s := k.Stats()
	if len(s.Instances) != 1 {
		return InstanceStats{}
	}
	return s.Instances[0]
}

// The recorded worker of each release, frame by frame against our sockets. What the recorded controller made of it is
// known: six chunks admitted, two evicted, and then the worker deregisters.
func TestRecordedWorkers(t *testing.T) {
	for _, release := range releases {
		t.Run(release, func(t *testing.T) {
			k, out := start(t, Config{ChunkSize: 16})
			pull, reply, beat, _ := k.Addrs()
			if release != "0.3.9.post2" {
				c := dial(t, reply, zmtp.DEALER)
				frames(t, release, "reply", "worker", func(frame []byte, decoded map[string]any) {
					if decoded["type"] != "RegisterMsg" {
						return
					}
					if got := ask(t, c, frame); !bytes.Equal(got, registered(beat)) {
						t.Errorf("the registration is answered %q", got)
					}
				})
				hb := dial(t, beat, zmtp.DEALER)
				frames(t, release, "heartbeat", "worker", func(frame []byte, _ map[string]any) {
					if got := ask(t, hb, frame); !bytes.Equal(got, beaten("")) {
						t.Errorf("a heartbeat is answered %q: a worker that registered must not freeze its cache", got)
					}
				})
			}
			r := k.NewRoster()
			r.Set([]Worker{{Slot: 1, ID: "inst0"}})
			var q Query
			held := make([]Held, 1)
			match := func() Held {
				q.Reset("", upTo(49))
				r.Match(&q, []uint32{1}, held)
				return held[0]
			}
			push := dial(t, pull, zmtp.PUSH)
			var last []byte
			frames(t, release, "pull", "worker", func(frame []byte, decoded map[string]any) {
				if kind := decoded["type"]; kind == "DeRegisterMsg" {
					last = bytes.Clone(frame)
				} else if last == nil && !strings.HasPrefix(kind.(string), "FullSync") {
					if err := push.Send(frame); err != nil {
						t.Fatal(err)
					}
				}
			})
			waittest.Until(t, "four chunks", func() bool { return one(t, k).Keys["LocalCPUBackend"] == 4 && k.Stats().Counts.Evicts == 2 })
			waittest.Until(t, "the hash is found out", func() bool { return match() == Held{48, 48, true} })
			if s := one(t, k); s.State != "live" || s.Ranks != 1 || !strings.Contains(s.Hash, "builtin") {
				t.Errorf("the instance is %+v", s)
			}
			if err := push.Send(last); err != nil {
				t.Fatal(err)
			}
			waittest.Until(t, "the worker is gone", func() bool { return len(k.Stats().Instances) == 0 })
			if !strings.Contains(out.String(), `msg="Worker registered: inst0"`) {
				t.Errorf("the log is %s", out)
			}
		})
	}
}

// A daemon that was restarted knows nobody: the first heartbeat is answered with full_sync, and the recorded sync fills
// the view again.
func TestRecordedFullSync(t *testing.T) {
	for _, release := range releases[1:] {
		t.Run(release, func(t *testing.T) {
			k, _ := start(t, Config{ChunkSize: 16})
			pull, reply, beat, _ := k.Addrs()
			c, hb, push := dial(t, reply, zmtp.DEALER), dial(t, beat, zmtp.DEALER), dial(t, pull, zmtp.PUSH)
			var beats [][]byte
			frames(t, release, "heartbeat", "worker", func(frame []byte, _ map[string]any) {
				beats = append(beats, bytes.Clone(frame))
			})
			if got := ask(t, hb, beats[0]); !bytes.Equal(got, beaten("worker_re_registered")) {
				t.Fatalf("the first heartbeat is answered %q", got)
			}
			if got := ask(t, hb, beats[1]); !bytes.Equal(got, beaten("")) {
				t.Errorf("the second heartbeat is answered %q", got)
			}
			sync := map[string][]byte{}
			for _, socket := range []string{"reply", "pull"} {
				frames(t, release, socket, "worker", func(frame []byte, decoded map[string]any) {
					if name := decoded["type"].(string); sync[name] == nil {
						sync[name] = bytes.Clone(frame)
					}
				})
			}
			var m message
			if err := m.decode(sync["FullSyncStartMsg"]); err != nil {
				t.Fatal(err)
			}
			if got := ask(t, c, sync["FullSyncStartMsg"]); !bytes.Equal(got, started(m.sync, "")) {
				t.Fatalf("the sync's start is answered %q", got)
			}
			sync["FullSyncStatusMsg"] = pack("type", "FullSyncStatusMsg", "instance_id", m.instance, "worker_id", m.worker,
				"sync_id", m.sync) // which the recording of 0.4.3 does not have
			open := progress{share: 0}
			if got := ask(t, c, sync["FullSyncStatusMsg"]); !bytes.Equal(got, open.answer(m.sync)) {
				t.Errorf("the status before the batch is %q", got)
			}
			if err := push.Send(sync["FullSyncBatchMsg"], sync["FullSyncEndMsg"]); err != nil {
				t.Fatal(err)
			}
			waittest.Until(t, "the sync is done", func() bool { return k.Stats().Counts.Syncs == 1 })
			done := progress{complete: true, share: 1}
			if got := ask(t, c, sync["FullSyncStatusMsg"]); !bytes.Equal(got, done.answer(m.sync)) {
				t.Errorf("the status after it is %q", got)
			}
			if n := one(t, k).Keys["LocalCPUBackend"]; n != int64(m.total) {
				t.Errorf("%d keys; want %d", n, m.total)
			}
			if got := ask(t, hb, beats[2]); !bytes.Equal(got, beaten("")) {
				t.Errorf("a heartbeat after the sync is answered %q", got)
			}
		})
	}
}

// A REQ of 0.3.10 and 0.3.11 is answered on the same socket as the DEALER of later releases.
func TestPeerLookup(t *testing.T) {
	k, _ := start(t, Config{})
	_, reply, _, _ := k.Addrs()
	c := newChunked(t, current)
	c.f = k.fleet
	for _, id := range []string{"a", "b"} {
		m := &message{kind: register, instance: id, ip: "10.0.0.1", port: 7, peerURL: id + ":1"}
		if err := k.fleet.register(m, time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	c.hold("a", 0, "LocalCPUBackend", 1, 2)
	c.hold("b", 0, "LocalCPUBackend", 1, 2, 3)
	look := func(instance string, hashes ...any) []byte {
		return ask(t, dial(t, reply, zmtp.REQ), pack("type", "BatchedP2PLookupMsg", "hashes", hashes, "instance_id", instance,
			"worker_id", 0))
	}
	if got, want := look("c", 1, 2, 3, 4), (found{"b", "LocalCPUBackend", 3, "b:1"}); !bytes.Equal(got, want.answer()) {
		t.Errorf("%q", got)
	}
	if got, want := look("b", 1, 2, 3), (found{"a", "LocalCPUBackend", 2, "a:1"}); !bytes.Equal(got, want.answer()) {
		t.Errorf("its own chunks are no news: %q", got)
	}
	if got := look("c", 9); !bytes.Equal(got, found{}.answer()) {
		t.Errorf("%q", got)
	}
}

func TestGarbage(t *testing.T) {
	k, out := start(t, Config{})
	pull, reply, _, _ := k.Addrs()
	c := dial(t, reply, zmtp.DEALER)
	for _, frame := range [][]byte{{}, {0xc1}, []byte("{"), pack("type", "LookupMsg"), pack("type", "RegisterMsg"),
		pack("type", "RegisterMsg", "instance_id", "a", "worker_id", maxRanks, "ip", "x", "port", 1)} {
		if got := ask(t, c, frame); !bytes.Contains(got, []byte("ErrorMsg")) {
			t.Errorf("%q is answered %q", frame, got)
		}
	}
	push := dial(t, pull, zmtp.PUSH)
	for n := range maxGarbage + 50 {
		frame := append([]byte{0xdd}, hex.EncodeToString([]byte{byte(n)})...)
		if push.Send(frame, pack("type", "DeRegisterMsg", "instance_id", "nobody")) != nil {
			break
		}
	}
	waittest.Until(t, "the connection is closed", func() bool { return push.Send(pack()) != nil })
	if n := strings.Count(out.String(), "is dropped"); n != 1 {
		t.Errorf("%d warnings for one peer:\n%s", n, out)
	}
	if !strings.Contains(out.String(), "127.0.0.1") {
		t.Errorf("the warning names no peer: %s", out)
	}
}

func TestAddressInUse(t *testing.T) {
	k, _ := start(t, Config{})
	pull, _, _, coordinator := k.Addrs()
	for _, c := range []Config{{Pull: pull}, {Coordinator: coordinator}, {Hash: "md5"}, {ChunkSize: -1}} {
		if other, err := New(c); err == nil || !strings.Contains(err.Error(), "lmcache: ") {
			other.Close()
			t.Errorf("%+v gives %v", c, err)
		}
	}
}
