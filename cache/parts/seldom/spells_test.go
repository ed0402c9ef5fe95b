package seldom

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestSpells: a trouble that lasts has a line at its beginning, one each five minutes and one at its end, with counts.
func TestSpells(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s Spells
		var text bytes.Buffer
		log := slog.New(slog.NewTextHandler(&text, nil))
		for range 71 {
			s.Warn(log, "main failed", "trouble")
			time.Sleep(5 * time.Second)
		}
		s.Warn(log, "other failed", "another pool's")
		s.Over(log, "main ", "over")
		s.Over(log, "main ", "over")
		if n := strings.Count(text.String(), "msg=trouble"); n != 2 || !strings.Contains(text.String(), "msg=trouble times=61 for=5m0s") {
			t.Errorf("%d lines:\n%s", n, &text)
		}
		if n := strings.Count(text.String(), "msg=over"); n != 1 || !strings.Contains(text.String(), "msg=over times=71 for=5m55s") {
			t.Errorf("%d ends:\n%s", n, &text)
		}
		s.Warn(log, "main failed", "trouble")
		if n := strings.Count(text.String(), "msg=trouble"); n != 3 {
			t.Errorf("%d lines; want one for the next spell:\n%s", n, &text)
		}
	})
}
