package sdktest

import (
	"testing"

	"github.com/warmpath/warmpath/sdk"
)

// tier classifies by the priority of the request.
type tier struct{ share float64 }

func (s tier) Classify(r *sdk.Request) (class int, weight float64) {
	return -int(r.Priority) + int(r.Rows), s.share
}

// failing keeps how a test fails.
type failing struct {
	testing.TB
	said string
}

func (f *failing) Helper()                      {}
func (f *failing) Fatalf(text string, _ ...any) { f.said = text }

// Classify gives a strategy the header without rows, and refuses what the host would cut.
func TestClassify(t *testing.T) {
	f := NewFrame(3)
	f.Header.Priority = 5
	if class, share := f.Classify(t, tier{.5}); class != -5 || share != .5 || f.Header.Rows != 3 {
		t.Errorf("class %d, share %v", class, share)
	}
	for _, c := range []struct {
		priority int32
		share    float64
		fails    bool
	}{{100, 0, false}, {-100, 100, false}, {101, 1, true}, {-101, 1, true}, {0, .05, true}, {0, 101, true}, {0, -1, true}} {
		f.Header.Priority = c.priority
		tb := &failing{TB: t}
		if f.Classify(tb, tier{c.share}); (tb.said != "") != c.fails {
			t.Errorf("priority %d with a share of %v: %q", c.priority, c.share, tb.said)
		}
	}
}
