package peers

import (
	"encoding/binary"
	"errors"
	"os"
	"testing"
	"time"
)

// TestStateFileOfAnEarlierBuild: a file that a build of November 2026 wrote is read. Where its form has to change, the
// number behind WHST changes, and docs/versions.md says what an upgrade across the change costs.
func TestStateFileOfAnEarlierBuild(t *testing.T) {
	b, err := os.ReadFile("testdata/state-2")
	if err != nil {
		t.Fatal(err)
	}
	written := time.UnixMicro(int64(binary.LittleEndian.Uint64(b[6:])))
	s, err := readState(b, written.Add(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	if len(s.pools) != 1 || s.pools[0].name != "pool1" || len(s.pools[0].workers) != 2 || len(s.pools[0].frames) == 0 {
		t.Errorf("%+v", s.pools)
	}
	b[4]--
	if _, err := readState(resum(b), written); !errors.Is(err, errStateOther) {
		t.Errorf("the form before: %v", err)
	}
}
