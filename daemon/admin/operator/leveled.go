package operator

import (
	"context"
	"log/slog"
)

// leveled passes the lines of a level and above on. A reload changes the level.
type leveled struct {
	slog.Handler
	level *slog.LevelVar
}

// NewLeveled returns a handler that passes the lines of a level and above on to h.
func NewLeveled(h slog.Handler, level *slog.LevelVar) slog.Handler {
	return leveled{Handler: h, level: level}
}

// Enabled implements slog.Handler.
func (h leveled) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= h.level.Level() && h.Handler.Enabled(ctx, l)
}

// WithAttrs implements slog.Handler.
func (h leveled) WithAttrs(a []slog.Attr) slog.Handler {
	return leveled{Handler: h.Handler.WithAttrs(a), level: h.level}
}

// WithGroup implements slog.Handler.
func (h leveled) WithGroup(name string) slog.Handler {
	return leveled{Handler: h.Handler.WithGroup(name), level: h.level}
}

// SetLevel applies server.log_level; conf has checked the word.
func SetLevel(to *slog.LevelVar, word string) {
	var level slog.Level
	if level.UnmarshalText([]byte(word)) == nil {
		to.Set(level)
	}
}
