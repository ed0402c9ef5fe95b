package lmworker

import (
	"encoding/hex"
	"testing"
)

// TestRecordedMessages: each message has the bytes that real workers sent, of 0.5.6 and of 0.3.9.post2.
func TestRecordedMessages(t *testing.T) {
	f := func(what string, got []byte, want string) {
		t.Helper()
		if s := hex.EncodeToString(got); s != want {
			t.Errorf("%s:\n got %s\nwant %s", what, s, want)
		}
	}
	const inst = "ab696e7374616e63655f6964a5696e737430a9776f726b65725f696400"
	const cpu = "a86c6f636174696f6eaf4c6f63616c4350554261636b656e64"
	c := Config{Release: Release056, Instance: "inst0", IP: "127.0.0.1", Port: 18390}
	f("register", c.alive("RegisterMsg"), "86a474797065ab52656769737465724d7367"+inst+
		"a26970a93132372e302e302e31a4706f7274cd47d6ad706565725f696e69745f75726cc0")
	f("heartbeat", c.alive("HeartbeatMsg"), "86a474797065ac4865617274626561744d7367"+inst+
		"a26970a93132372e302e302e31a4706f7274cd47d6ad706565725f696e69745f75726cc0")
	f("deregister", c.deregister(), "85a474797065ad446552656769737465724d7367"+inst+
		"a26970a93132372e302e302e31a4706f7274cd47d6")
	f("evicts", c.batch([]op{{evict: true, key: 22}, {evict: true, key: 5}}, 6),
		"85a474797065b5426174636865644b564f7065726174696f6e4d7367"+inst+cpu+
			"aa6f7065726174696f6e739283a76f705f74797065a56576696374a36b657916a77365715f6e756d06"+
			"83a76f705f74797065a56576696374a36b657905a77365715f6e756d07")
	f("admit", c.batch([]op{{key: -8246605460123659238}}, 1),
		"85a474797065b5426174636865644b564f7065726174696f6e4d7367"+inst+cpu+
			"aa6f7065726174696f6e739183a76f705f74797065a561646d6974a36b6579d38d8e2c06c288541aa77365715f6e756d01")
	const id = "inst0_0_8070a95c"
	const sync = "a773796e635f6964b0696e7374305f305f3830373061393563"
	f("sync starts", c.syncStart(id, 6, 1), "87a474797065b046756c6c53796e6353746172744d7367"+inst+cpu+sync+
		"aa746f74616c5f6b65797306ab62617463685f636f756e7401")
	f("sync batch", c.syncBatch(id, 0, []int64{0x33088dd159c39c5c, -8246605460123659238, 22}),
		"87a474797065b046756c6c53796e6342617463684d7367"+inst+cpu+sync+
			"a862617463685f696400a46b65797393cf33088dd159c39c5cd38d8e2c06c288541a16")
	f("sync ends", c.syncEnd(id, 6), "86a474797065ae46756c6c53796e63456e644d7367"+inst+cpu+sync+
		"b161637475616c5f746f74616c5f6b65797306")
	old := Config{Release: Release039, Instance: "inst0", IP: "127.0.0.1", Port: 18590}
	f("old register", old.alive("RegisterMsg"), "86a474797065ab52656769737465724d7367"+inst+
		"a26970a93132372e302e302e31a4706f7274cd489eaf64697374726962757465645f75726caf3132372e302e302e313a3138393939")
	f("old admit", old.single(op{key: -2749621609143173571}), "85a474797065aa4b5641646d69744d7367"+inst+
		"a36b6579d3d9d761b6f0487e3d"+cpu)
	f("old evict", old.single(op{evict: true, key: 22}), "85a474797065aa4b5645766963744d7367"+inst+"a36b657916"+cpu)
}
