package vllmsim

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"

	"github.com/warmpath/warmpath/daemon/lab/vllmsim/engine"
)

// kvHints is vLLM's KvHintsEnvelope, of which KVCR reads the first kv.fetch. Where vLLM takes the field from HTTP, at
// /inference/v1/generate, this worker serves nothing; it takes it with chats and completions.
type kvHints struct {
	Protocol string `json:"protocol_version"`
	Message  string `json:"message_id"`
	Actions  []struct {
		ID      string `json:"action_id"`
		Type    string `json:"action_type"`
		Version string `json:"action_version"`
		Payload struct {
			Source string   `json:"source_control_endpoint"`
			Hashes []uint64 `json:"block_hashes"`
			Mode   string   `json:"mode"`
		} `json:"payload"`
	} `json:"actions"`
}

// blocksPath is where a worker says how many of the blocks in a list of hashes it has. The source that a hint names is
// the worker's own port, and not that of a cache beside it.
const blocksPath = "/sim/kv/blocks"

// prepareHints has a job fetch the blocks that a hint names, as far as the source has them and they are the prompt's.
// Hints are advice: one that is wrong is passed over.
func (c checker) prepareHints(j *job, b *body) {
	if !c.cfg.KVHints || b.Hints == nil {
		return
	}
	for _, a := range b.Hints.Actions {
		host, isTCP := strings.CutPrefix(a.Payload.Source, "tcp://")
		if a.Type != "kv.fetch" || !isTCP || a.Payload.Mode != "" && a.Payload.Mode != "copy" {
			continue
		}
		var said struct{ Held int }
		text, _ := json.Marshal(a.Payload.Hashes) // numbers
		resp, err := pullClient.Post("http://"+host+blocksPath, "application/json", bytes.NewReader(text))
		if err != nil {
			return
		}
		defer resp.Body.Close()
		if json.NewDecoder(io.LimitReader(resp.Body, 1<<16)).Decode(&said) != nil {
			return
		}
		for _, ch := range j.choices {
			ch.seq.Remote = ch.seq.Leading(a.Payload.Hashes[:min(max(0, said.Held), len(a.Payload.Hashes))])
		}
		return
	}
}

// blocks answers how many leading blocks of a list the worker's first engine has.
func (rs *ranks) blocks(w http.ResponseWriter, r *http.Request) {
	var hashes []uint64
	if err := json.NewDecoder(io.LimitReader(r.Body, 1<<24)).Decode(&hashes); err != nil {
		writeError(w, badRequest("", "The body is no list of hashes: "+err.Error()))
		return
	}
	d, n := rs.drivers[0], 0
	d.mu.Lock()
	held := d.engine.Held(engine.OnGPU)
	d.mu.Unlock()
	for n < len(hashes) && held[hashes[n]] > 0 {
		n++
	}
	writeJSON(w, http.StatusOK, map[string]int{"held": n})
}
