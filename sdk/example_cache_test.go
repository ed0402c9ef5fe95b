package sdk_test

import (
	"fmt"

	"github.com/warmpath/warmpath/sdk"
	"github.com/warmpath/warmpath/sdk/score"
	"github.com/warmpath/warmpath/sdk/sdktest"
)

// keeper chooses by the score. Where the chosen worker's KV cache is full, it asks for a session that is expected back
// to be kept twice as long as its last gap was.
type keeper struct{ rule score.Rule }

func (s *keeper) Route(r *sdk.Request, workers []sdk.Worker) sdk.Decision {
	d := s.rule.Route(r, workers)
	if w := d.Row(); w >= 0 && r.ExpectedTurns > 0 && workers[w].KVUsage > .9 {
		if err := sdk.KeepCache(2 * float64(r.SinceLast)); err != nil {
			sdk.Log(sdk.Warn, err.Error())
		}
	}
	return d
}

// A session whose tools take four seconds is kept for eight, one that has ended is not.
func Example_keep() {
	h := &sdktest.Host{}
	defer h.Serve()()
	f := sdktest.NewFrame(2).Prompt(20_000)
	f.Rows[0].KVUsage, f.Rows[1].KVUsage = .95, .95
	f.Header.Turn, f.Header.SinceLast = 3, 4
	for _, turns := range []uint32{0, 5} {
		f.Header.ExpectedTurns = turns
		sdk.PickNative(&keeper{}, &f.Header, f.Rows, make([]uint32, 2))
		fmt.Printf("%d turns expected: %d wishes\n", turns, len(h.Wishes))
	}
	fmt.Printf("%+v\n", h.Wishes)
	// Output:
	// 0 turns expected: 0 wishes
	// 5 turns expected: 1 wishes
	// [{What:0 Row:0 Amount:8000 Session:}]
}
