package bugs

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/warmpath/warmpath/testdata/rig"
	"github.com/warmpath/warmpath/testdata/rig/wire"
	"github.com/warmpath/warmpath/testdata/trials/engine"
)

// Work that does not come through this router shows in the workers' metrics alone.
var elsewheres = []wallCase{
	{"a-worker-where-others-wait-gets-few-prompts", burdened("prefixaware", 32, 60, .99)},
	{"a-worker-where-others-wait-gets-few-prompts-by-events", burdened("kvaware", 32, 60, .99)},
	{"a-worker-where-others-run-gets-few-prompts", burdened("prefixaware", 12, 0, .3)},
	{"a-worker-where-others-wait-gets-few-sessions", burdened("session", 32, 60, .99)},
	{"workers-that-are-loaded-alike-share-the-prompts", loadedAlike},
}

// burdened has one of three workers report requests of others, and sends 12 new prompts.
func burdened(strategy string, running, waiting int, kv float64) func(*lab) (string, bool) {
	return func(l *lab) (string, bool) {
		at := shares(l, fmt.Sprintf("strategy = %q", strategy), gauges(running, waiting, kv), gauges(0, 0, .01), gauges(0, 0, .01))
		return fmt.Sprintf("%d of 12 prompts at the busy one", at[0]), at[0] <= 2 && at[0]+at[1]+at[2] == 12
	}
}

// loadedAlike is a control: what both report is no reason to choose.
func loadedAlike(l *lab) (string, bool) {
	at := shares(l, `strategy = "prefixaware"`, gauges(12, 2, .4), gauges(10, 3, .4))
	return fmt.Sprintf("%d and %d prompts", at[0], at[1]), at[0] >= 3 && at[1] >= 3
}

func gauges(running, waiting int, kv float64) string {
	const of = `{engine="0",model_name="sim"}`
	return fmt.Sprintf("vllm:num_requests_running%s %d\nvllm:num_requests_waiting%s %d\nvllm:kv_cache_usage_perc%s %v\n",
		of, running, of, waiting, of, kv)
}

// shares sends new prompts, one after the other, and returns how many each worker got.
func shares(l *lab, pool string, pages ...string) []int64 {
	counts := make([]atomic.Int64, len(pages))
	var at []string
	for i, page := range pages {
		e := l.engine(&engine.Engine{Metrics: func() string { return page }, Post: func(c *wire.Call) bool {
			counts[i].Add(1)
			return engine.Echo(c)
		}})
		at = append(at, e.Addr())
	}
	r := l.routerWith(rig.Router{Pool: pool, Workers: at})
	time.Sleep(time.Second)
	clients(1, 12, func(_, i int) wire.Answer {
		return r.post(chatPath, chat(fmt.Sprintf("%d question", i)), fmt.Sprintf("X-Session-Id: s%d", i))
	})
	out := make([]int64, len(pages))
	for i := range counts {
		out[i] = counts[i].Load()
	}
	return out
}
