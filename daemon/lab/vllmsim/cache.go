package vllmsim

import (
	"net/http"
	"strconv"

	"github.com/warmpath/warmpath/daemon/lab/vllmsim/events"
)

// cacheAPI serves what is asked and done about the KV cache.
type cacheAPI struct{ ranks *ranks }

// routes registers the paths; that of the development mode is missing without it.
func (a cacheAPI) routes(m router, dev bool) {
	m.on("/kv_event_sources", "GET", a.sources)
	if dev {
		m.on("/reset_prefix_cache", "POST", a.reset)
	}
}

// sources serves GET /kv_event_sources: where each rank publishes. A port that was found for 0 is named.
func (a cacheAPI) sources(w http.ResponseWriter, _ *http.Request) {
	found := map[string]events.Source{}
	for rank, d := range a.ranks.drivers {
		if d.events != nil {
			found[strconv.Itoa(rank)] = d.events.Source()
		}
	}
	writeJSON(w, http.StatusOK, found)
}

// reset serves POST /reset_prefix_cache. It fails while requests run, unless the request has it send them back to wait.
func (a cacheAPI) reset(w http.ResponseWriter, r *http.Request) {
	asked := func(name string) bool {
		on, _ := strconv.ParseBool(r.URL.Query().Get(name))
		return on
	}
	ok := a.ranks.resetCache(asked("reset_running_requests"), asked("reset_external"))
	writeJSON(w, http.StatusOK, map[string]bool{"success": ok})
}
