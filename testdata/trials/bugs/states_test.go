package bugs

import (
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/warmpath/warmpath/testdata/rig"
	"github.com/warmpath/warmpath/testdata/rig/wire"
	"github.com/warmpath/warmpath/testdata/trials/engine"
)

// An engine that sleeps or is paused says so on a page other than /health.
var states = []wallCase{
	{"an-engine-that-sleeps-gets-nothing-until-it-wakes", sleeping("weights_offloaded", 1)},
	{"an-engine-that-has-discarded-all-gets-nothing", sleeping("discard_all", 1)},
	{"two-of-three-engines-that-sleep-get-nothing", sleeping("weights_offloaded", 2)},
	{"an-engine-without-that-gauge-serves", sleeping("awake", 1)},
}

// asleep is a page of metrics of an engine in that state.
func asleep(state string) string {
	var b strings.Builder
	b.WriteString(wire.Metrics(32768) + "# TYPE vllm:engine_sleep_state gauge\n")
	for _, s := range []string{"awake", "weights_offloaded", "discard_all"} {
		on := 0
		if s == state {
			on = 1
		}
		fmt.Fprintf(&b, "vllm:engine_sleep_state{engine=\"0\",model_name=\"sim\",sleep_state=%q} %d.0\n", s, on)
	}
	return b.String()
}

// sleeping has n engines sleep beside one that is awake, then wake up. Slow start is off: the share of one that has woken
// up is what is looked at.
func sleeping(state string, n int) func(*lab) (string, bool) {
	return func(l *lab) (string, bool) {
		var now atomic.Pointer[string]
		now.Store(&state)
		var asked atomic.Int64
		engines := l.engines(1, nil)
		for range n {
			engines = append(engines, l.engine(&engine.Engine{
				Metrics: func() string { return asleep(*now.Load()) },
				Post:    func(c *wire.Call) bool { asked.Add(1); return engine.Echo(c) },
			}))
		}
		r := l.routerWith(rig.Router{Pool: often + "slow_start = \"0s\"\n"}, engines...)
		time.Sleep(1500 * time.Millisecond)
		share := func(mark string) (int64, int) {
			before := asked.Load()
			all := clients(1, 20, func(_, i int) wire.Answer { return r.chat(fmt.Sprintf("%d %s", i, mark)) })
			return asked.Load() - before, refused(all)
		}
		then, bad := share("asleep")
		awake := "awake"
		now.Store(&awake)
		time.Sleep(1500 * time.Millisecond)
		after, worse := share("awake")
		return fmt.Sprintf("%d of 20 requests while it is %s, %d when it is awake; %d refused", then, state, after, bad+worse),
			(then == 0) == (state != awake) && after > 0 && bad+worse == 0
	}
}
