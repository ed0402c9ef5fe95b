package pair

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"

	"github.com/warmpath/warmpath/daemon/request/prompt"
)

// Two real engines say of their pair what this package reads and passes on: the answers of vLLM 0.32.0 with NIXL 1.5.1,
// of each kind. testdata/README.md has their source.
func TestRecordedPair(t *testing.T) {
	kinds := map[string]prompt.Kind{"chat": prompt.Chat, "completion": prompt.Completion, "responses": prompt.Responses,
		"messages": prompt.Messages}
	for name, kind := range kinds {
		first := recorded(t, "nixl-"+name+"-prefill.json")
		handed := Handed(first)
		var p struct {
			Prefill bool    `json:"do_remote_prefill"`
			Decode  bool    `json:"do_remote_decode"`
			Blocks  [][]int `json:"remote_block_ids"`
			Engine  string  `json:"remote_engine_id"`
			Request string  `json:"remote_request_id"`
			Port    int     `json:"remote_port"`
			Tokens  int     `json:"remote_num_tokens"`
			Cached  int     `json:"remote_prefill_cached_tokens"`
		}
		if err := json.Unmarshal(handed, &p); err != nil || !p.Prefill || p.Decode || len(p.Blocks) != 1 ||
			len(p.Blocks[0]) != (p.Tokens+31)/32 || p.Engine == "" || p.Request == "" || p.Port == 0 {
			t.Errorf("%s: %s, %v", name, handed, err)
		}
		x := Transfer{Connector: NIXL, Kind: kind}
		if body := x.Decode([]byte(`{"model":"tiny"}`), handed); !bytes.Contains(first, handed) ||
			string(body) != `{"model":"tiny","kv_transfer_params":`+string(handed)+"}" {
			t.Errorf("%s: the second leg is %s", name, body)
		}
		second := recorded(t, "nixl-"+name+"-decode.json")
		if h := Handed(second); h != nil {
			t.Errorf("%s: the decoder hands on %s", name, h)
		}
	}
}

func recorded(t *testing.T, file string) []byte {
	t.Helper()
	text, err := os.ReadFile("testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
