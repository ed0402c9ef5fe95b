package sdk_test

import (
	"errors"
	"fmt"

	"github.com/warmpath/warmpath/sdk"
	"github.com/warmpath/warmpath/sdk/sdktest"
)

// reserved keeps one worker for urgent requests, and sends the others to the fewest in flight.
type reserved struct{ below int }

func (s *reserved) Configure(o *sdk.Options) error {
	s.below = o.Int("urgent_below", 0)
	if s.below > 0 {
		return errors.New("reserved: urgent_below must be 0 or less; lower priorities come first")
	}
	return nil
}

func (s *reserved) Route(r *sdk.Request, workers []sdk.Worker) sdk.Decision {
	if len(workers) == 1 || int(r.Priority) < s.below {
		return sdk.To(0).Because(sdk.ReasonOwn)
	}
	var k sdk.Ranking
	for i := range workers[1:] {
		w := &workers[i+1]
		k.Enter(i+1, w, float64(w.InFlight))
	}
	return k.Choose(r).Because(sdk.ReasonLeast)
}

// A strategy with an option, and how it is tried out without wasm.
func Example() {
	s := &reserved{}
	fmt.Println(sdktest.Configure(s, map[string]string{"urgent_below": "-5"}))
	f := sdktest.NewFrame(3)
	f.Rows[1].InFlight = 2
	order := make([]uint32, len(f.Rows))

	d := sdk.PickNative(s, &f.Header, f.Rows, order)
	fmt.Println("worker", d.Row(), "-", d.Reason(), "- then", order[:f.Header.OrderLen])

	f.Header.Priority = -10
	d = sdk.PickNative(s, &f.Header, f.Rows, order)
	fmt.Println("worker", d.Row(), "-", d.Reason())
	// Output:
	// <nil>
	// worker 2 - fewest in flight - then [1]
	// worker 0 - reason 256
}

// What an operator reads whose configuration names an option that the strategy does not have.
func ExampleOptions() {
	s := &reserved{}
	fmt.Println(sdktest.Configure(s, map[string]string{"urgent": "5"}))
	fmt.Println(sdktest.Configure(s, map[string]string{"urgent_below": "many"}))
	// Output:
	// sdk: unknown option "urgent"; the strategy knows urgent_below
	// sdk: option "urgent_below" is "many"; want a whole number
}
