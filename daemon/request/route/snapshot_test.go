package route

import (
	"strings"
	"sync"
	"testing"

	"github.com/warmpath/warmpath/cache/parts/blocks"
	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/host"
	"github.com/warmpath/warmpath/sdk/abi"
)

// pricing is obedient, and asks for the host's score.
var pricing = sync.OnceValue(func() *host.Strategy {
	h, _ := shared()
	wants := `(func (export "wp_wants") (result i32) i32.const 1)` // abi.WantCost
	return load(h, "pricing", strings.Replace(obedient, `(func (export "wp_frame")`, wants+` (func (export "wp_frame")`, 1))
})

// TestASnapshotHasBothViews: a strategy that looks on gets the workers' reports if it asks for them, the host's score
// if it asks for that, and else what the deciding strategy saw. The deciding strategy sees no more than without it.
func TestASnapshotHasBothViews(t *testing.T) {
	_, plain := shared()
	s := sceneBy(t, "a b", worker.Config{}, plain)
	s.reports("b", blocks.GPU, 1, ids(0, 320))
	a := s.asking(completion(first, text("x", 30)), Claim{})
	a.IDs = ids(0, 960)
	if s.WantsIDs() {
		t.Error("nobody wants ids")
	}
	s.Watch([]*host.Strategy{asking()})
	if !s.WantsIDs() {
		t.Error("who looks on wants ids")
	}
	c := s.chosen(a)
	var n Snapshot
	for range 2 { // its memory is used again
		n.Take(c, nil)
		n.View(asking())
		h, row := &n.Frame.Header, &n.Frame.Rows[c.fleet.row("b")]
		if row.GPU != 320 || !row.Live() || h.Flags&abi.HeaderTokens == 0 || h.BestRow != int32(c.fleet.row("b")) || h.BlockTokens != 1 {
			t.Errorf("reported: %+v of %+v", row, h)
		}
		n.View(plain)
		if row := &n.Frame.Rows[c.fleet.row("b")]; row.GPU != 0 || row.Live() || n.Frame.Header.BlockTokens == 1 {
			t.Errorf("by history: %+v", row)
		}
	}
	if h := &c.fleet.frame.Header; h.Flags&abi.HeaderTokens != 0 || c.fleet.frame.Rows[1].Live() {
		t.Errorf("the strategy that decided saw reports: %+v", h)
	}
	a.IDs = nil
	n.Take(s.chosen(a), nil)
	n.View(asking())
	if n.Frame.Header.Flags&abi.HeaderTokens != 0 {
		t.Error("reports without ids")
	}
	n.View(pricing())
	if n.Frame.Rows[0].Cost == 0 {
		t.Error("no cost for one that asks for it")
	}
}
