package daemon

import (
	"encoding/json"

	"github.com/warmpath/warmpath/daemon/gate"
)

// models is /v1/models merged over the workers of all pools: each entry as its worker wrote it, each id once, and only
// those that a pool serves and the caller may use.
func (d *Daemon) models(caller *gate.Caller) *Outbound {
	list := struct {
		Object string            `json:"object"`
		Data   []json.RawMessage `json:"data"`
	}{"list", []json.RawMessage{}}
	seen := map[string]bool{}
	for _, p := range d.state.Load().pools {
		for _, raw := range p.workers.Models() {
			var entry struct {
				ID string `json:"id"`
			}
			if json.Unmarshal(raw, &entry) != nil || seen[entry.ID] || d.poolFor(entry.ID) != p || !caller.Allows(entry.ID) {
				continue
			}
			seen[entry.ID] = true
			list.Data = append(list.Data, raw)
		}
	}
	body, _ := json.Marshal(list)
	out := &Outbound{Status: 200, Body: body}
	out.set("Content-Type", "application/json")
	return out
}
