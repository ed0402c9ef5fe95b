package feed

import (
	"fmt"
	"strings"
	"time"

	"github.com/warmpath/warmpath/cache/holdings"
	"github.com/warmpath/warmpath/cache/kvevents"
	"github.com/warmpath/warmpath/daemon/fleet/worker"
)

// A worker that answers this number of requests over this time without an event publishes none: an engine stores a
// prompt of a block or more at once, and a worker that only gets shorter prompts has nothing to report.
const (
	silentAnswers = 20
	silentTime    = 30 * time.Second
	oldConnection = 30 * time.Second // older than the time in which a scrape finds a new process
)

// Reasons not to believe a view whose events come in order.
const (
	doubtSilent = "no event since its start"
	doubtFull   = "it holds more than the index has room for"
	doubtTwo    = "two publishers under its name"
)

// inspect looks for reasons not to believe the source, and logs one once.
func (s *source) inspect(w *worker.Stats, all []worker.Stats, x *holdings.Index, now time.Time) {
	if w.Restarts != s.restarts {
		s.restarts = w.Restarts
		s.answered = w.Answered
		s.sub.Doubt(oldConnection)
	}
	if w.Answered != s.served {
		s.served = w.Answered
		s.sub.Served()
	}
	st := s.sub.Stats()
	if now.Sub(s.contested) < takeoverTime { // doubtTwo holds
		return
	}
	why := ""
	switch {
	case x.Worker(s.slot).Overflows > 0:
		why = doubtFull
	case topicOfAnother(st.Topic, w, all) != "":
		why = "its topic names worker " + topicOfAnother(st.Topic, w, all)
	case s.isSilent(&st, w, now):
		why = doubtSilent
	}
	if !s.entry.doubted(why) || why == "" {
		return
	}
	remedy := map[string]string{
		doubtSilent: "check enable_kv_cache_events in --kv-events-config, and that prefix caching is on",
		doubtFull:   "its KV cache is larger than the index takes, or its events are not vLLM's",
	}[why]
	if remedy == "" {
		remedy = "two workers are mixed up: check kv_events of the worker, and topic in its --kv-events-config"
	}
	s.log.Warn("the worker's KV events are not believed: it is chosen by routed history", "why", why, "remedy", remedy)
}

// isSilent reports whether a worker that serves has published nothing. It is connected: one that is not has its own
// line.
func (s *source) isSilent(st *kvevents.Stats, w *worker.Stats, now time.Time) bool {
	return st.Connected && st.Batches == 0 && w.Answered-s.answered >= silentAnswers && now.Sub(s.began) >= silentTime
}

// named returns the worker that a topic names, kv@<worker id>@<model>, or all of it.
func named(topic string) string {
	if rest, ok := strings.CutPrefix(topic, "kv@"); ok {
		id, _, _ := strings.Cut(rest, "@")
		return id
	}
	return topic
}

// topicOfAnother returns the other worker of the pool that the topic names. A name that no worker has, as a pod's, is
// free text.
func topicOfAnother(topic string, w *worker.Stats, all []worker.Stats) string {
	name := named(topic)
	if name == "" || name == w.Endpoint || name == w.ID {
		return ""
	}
	at := placeAt(name)
	for i := range all {
		other := at != "" && placeAt(all[i].URL) == at && all[i].Endpoint != w.Endpoint
		if all[i].Endpoint == name || all[i].ID == name || other {
			return fmt.Sprintf("%q", name)
		}
	}
	return ""
}
