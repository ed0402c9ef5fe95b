package seldom

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestOnceForgets: keys that strangers make up silence the others for an hour, and not for ever.
func TestOnceForgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var o Once
		var text bytes.Buffer
		log := slog.New(slog.NewTextHandler(&text, nil))
		for i := range 2 * maxKeys {
			o.Warn(log, fmt.Sprint(i), "made up")
		}
		o.Warn(log, "true", "a true line")
		time.Sleep(forgetAfter + time.Second)
		o.Warn(log, "true", "a true line")
		o.Warn(log, "true", "a true line")
		if n := strings.Count(text.String(), "made up"); n != maxKeys {
			t.Errorf("%d lines of made-up keys; want %d", n, maxKeys)
		}
		if n := strings.Count(text.String(), "a true line"); n != 1 {
			t.Errorf("%d lines; want one, an hour later", n)
		}
	})
}
