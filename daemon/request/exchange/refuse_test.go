package exchange

import (
	"testing"

	"github.com/warmpath/warmpath/daemon/request/admission"
	"github.com/warmpath/warmpath/daemon/request/epoch"
	"github.com/warmpath/warmpath/daemon/request/route"
)

// TestFaultOfVerdict is the table of what a client gets for a verdict that refuses.
func TestFaultOfVerdict(t *testing.T) {
	e := Exchange{req: admission.Request{In: inbound("POST", "/v1/chat/completions", `{"model":"named"}`), Epoch: &epoch.Epoch{}}}
	e.req.Pool = &epoch.Pool{Patterns: everyModel{}, Pool: &route.Pool{Name: "p"}}
	e.req.Parse()
	t.Cleanup(e.req.Release)
	for v, code := range map[route.Verdict]string{route.NoWorker: "no_worker", route.Unheard: "no_worker", route.UnknownModel: "model_not_found",
		route.Full: "workers_full", route.SessionSilent: "session_store_silent", route.SessionUnknown: "session_unknown",
		route.SessionExpired: "session_expired", route.SessionClosed: "session_closed", route.SessionResting: "session_worker_resting",
		route.SessionOtherModel: "session_of_another_model"} {
		if got := e.faultOf(v); got.Code != code {
			t.Errorf("%v: %q; want %q", v, got.Code, code)
		}
	}
}
