package daemon

import (
	"context"
	"log/slog"
)

// leveled passes the lines of a level and above on. A reload changes the level.
type leveled struct {
	slog.Handler
	level *slog.LevelVar
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

// setLevel takes up server.log_level; conf has checked the word.
func setLevel(to *slog.LevelVar, word string) {
	var level slog.Level
	if level.UnmarshalText([]byte(word)) == nil {
		to.Set(level)
	}
}

// maxTold bounds the lists in log lines.
const maxTold = 32

// strategies lists which module serves which pool, for the log.
func strategies(pools []*pool) (list []string) {
	for _, p := range pools {
		if s := p.route.Strategy.Strategy(); s != nil && len(list) < maxTold {
			list = append(list, p.name+": "+s.Name()+" "+s.SHA256()[:12])
		}
	}
	return list
}
