package seldom

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestSpellsUntilQuiet: a trouble ends a minute after the last one, with its number if there were several.
func TestSpellsUntilQuiet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s Spells
		var text bytes.Buffer
		log := slog.New(slog.NewTextHandler(&text, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				a = slog.Attr{}
			}
			return a
		}}))
		f := func(troubles int, want string) {
			t.Helper()
			text.Reset()
			for i := range troubles {
				s.WarnUntilQuiet(log, "main late", "trouble", "quiet", "id", i)
				time.Sleep(40 * time.Second)
				synctest.Wait()
			}
			time.Sleep(time.Hour)
			synctest.Wait()
			if text.String() != want {
				t.Errorf("%d troubles:\n%swant\n%s", troubles, &text, want)
			}
		}
		f(1, "level=WARN msg=trouble id=0\n")
		f(3, "level=WARN msg=trouble id=0\nlevel=INFO msg=quiet times=3 for=1m20s\n")
		f(9, "level=WARN msg=trouble id=0\nlevel=WARN msg=trouble id=8 times=9 for=5m20s\nlevel=INFO msg=quiet times=9 for=5m20s\n")
	})
}

// TestSpellsOfLikeKeys: a spell that ends leaves those be whose key begins with its own.
func TestSpellsOfLikeKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s Spells
		var text bytes.Buffer
		log := slog.New(slog.NewTextHandler(&text, nil))
		s.WarnUntilQuiet(log, "main", "of main", "main is quiet")
		for range 4 {
			s.WarnUntilQuiet(log, "main-2", "of the other", "the other is quiet")
			time.Sleep(30 * time.Second)
		}
		time.Sleep(time.Hour)
		if n := strings.Count(text.String(), "of the other"); n != 1 || !strings.Contains(text.String(), "the other is quiet\" times=4") {
			t.Errorf("%d lines; want one, and the end of 4:\n%s", n, &text)
		}
	})
}

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
