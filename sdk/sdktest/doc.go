// Package sdktest stands in for the host, so that a strategy is tested with plain go test and no wasm.
//
//	func TestLeast(t *testing.T) {
//		f := sdktest.NewFrame(4)
//		f.Rows[0].InFlight = 3
//		if got := f.Run(t, least{}); got.Row != 1 {
//			t.Errorf("chose row %d; want 1", got.Row)
//		}
//	}
//
// [Frame] is one request and its workers with the values of a healthy idle fleet, [Frame.Randomize] any other, and
// [Host] answers what the strategy asks for beyond the frame. Run holds the strategy to the contract: an index that is
// no worker, an alternative that the host would skip, or a change to the rows fails the test.
package sdktest
