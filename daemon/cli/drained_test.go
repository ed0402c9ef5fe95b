package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/daemon/admin/operator"
)

// TestDrainWaitsForOtherRouters: what others have in flight counts, and who it is stands in the error; beside others a
// moment without any proves nothing.
func TestDrainWaitsForOtherRouters(t *testing.T) {
	t.Parallel()
	f := func(own, others int, routers operator.RoutersState, wait, want string) {
		t.Helper()
		pools := []operator.PoolState{{Name: "p", Workers: []operator.WorkerState{{ID: "w", State: "draining", InFlight: own,
			Others: others}}}}
		admin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/api/v1/pools":
				_ = json.NewEncoder(w).Encode(pools)
			case "/api/v1/routers":
				_ = json.NewEncoder(w).Encode(routers)
			}
		}))
		defer admin.Close()
		p := warmpath(t, workplace(t), "drain w --wait "+wait+" --admin "+admin.URL)
		if p.end(); !strings.Contains(p.String(), want) {
			t.Errorf("%d and %d: %s; want %q", own, others, p, want)
		}
	}
	beside := func(alive, connected bool, at map[string]int) (s operator.RoutersState) {
		busy, _ := json.Marshal(at)
		text := fmt.Sprintf(`{"on": true, "connected": %v, "pools": [{"pool": "p", "routers": [{"name": "rb", "alive": %v,
			"in_flight_by_worker": %s}]}]}`, connected, alive, busy)
		if err := json.Unmarshal([]byte(text), &s); err != nil {
			t.Fatal(err)
		}
		return s
	}
	f(0, 0, operator.RoutersState{}, "1s", "it is idle: safe to stop\n")
	f(1, 0, operator.RoutersState{}, "300ms", "1 request still at w after 300ms: 1 of this router\n")
	f(0, 2, beside(true, true, map[string]int{"w": 2, "x": 7}), "300ms",
		"2 requests still at w after 300ms: 2 of router rb; if another router goes on sending there, drain it there too")
	f(1, 1, beside(true, true, nil), "300ms", "2 requests still at w after 300ms: 1 of other routers, 1 of this router; if")
	f(0, 0, beside(true, true, nil), "300ms", "router rb may still send there")
	f(0, 0, beside(true, true, nil), "20s", "it is idle at this router and at router rb: safe to stop")
	f(0, 0, beside(false, true, nil), "20s", "it is idle: safe to stop\n")
	f(0, 0, beside(false, false, nil), "20s", "the history is lost, so other routers were not told")
}
