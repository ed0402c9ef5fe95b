package resp

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/daemon/lab/logtest"
)

// A client that tries passwords writes no line for each.
func TestWrongPasswordsInLog(t *testing.T) {
	var log logtest.Log
	s, _ := serve(t, Config{Password: "secret", Log: slog.New(slog.NewTextHandler(&log, nil))})
	if got := ask(t, dial(t, s), strings.Repeat(cmd("AUTH", "guess"), 100)+cmd("AUTH", "secret")); strings.Count(got, "-WRONGPASS") != 100 {
		t.Errorf("answers %.200q", got)
	}
	if n := strings.Count(log.String(), "wrong password"); n != 1 {
		t.Errorf("%d lines; want 1:\n%.500s", n, log.String())
	}
}
