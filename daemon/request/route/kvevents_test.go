package route

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/host"
	"github.com/warmpath/warmpath/sdk/abi"
)

// TestKVEventsInAChain: a filter that wants the workers' events gets them before a strategy that does not. To ask whether
// one wants them allocates nothing.
func TestKVEventsInAChain(t *testing.T) {
	m := newModules(t)
	hears := load(m.host, "hears", `(module
  (import "warmpath_v1" "metric" (func $add (param i32 i32 i64)))
  (memory (export "memory") 1)
  (func (export "warmpath_abi_1_2"))
  (func (export "wp_frame") (param i32) (result i32) i32.const 1024)
  (func (export "wp_wants") (result i32) i32.const 16)
  (data (i32.const 16) "n")
  (func (export "wp_on_kv_event") (param i32) i32.const 16 i32.const 1 i64.const 4607182418800017408 call $add)`+allFilter+
		onlyDeclines)
	t.Cleanup(func() { hears.Close(context.Background()) })
	last := m.load("last", host.Options{}, onlyDeclines)
	for _, filters := range [][]*host.Strategy{nil, {hears}} {
		wanted := len(filters) > 0
		s := sceneBy(t, "a b", worker.Config{}, chain(append(slices.Clone(filters), last)...))
		if got := s.WantsKVEvents(); got != wanted {
			t.Errorf("%d filters: wanted %v", len(filters), got)
		}
		if n := testing.AllocsPerRun(100, func() { s.WantsKVEvents() }); n != 0 {
			t.Errorf("%d filters: %v allocations", len(filters), n)
		}
		s.KVEvents(1, []abi.KVEvent{{Kind: abi.EventStored, Hash: 7}}, time.Now())
	}
	end := time.Now().Add(10 * time.Second)
	for hears.Stats().Metrics["n"] == 0 && time.Now().Before(end) {
		time.Sleep(time.Millisecond)
	}
	if n := hears.Stats().Metrics["n"]; n != 1 {
		t.Errorf("the filter was told %v times; want once", n)
	}
}
