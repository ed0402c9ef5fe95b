package cli

import (
	"context"
	"io"
	"log/slog"
	"math"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/warmpath/warmpath/conf"
	"github.com/warmpath/warmpath/daemon"
	"github.com/warmpath/warmpath/daemon/admin/unit"
	"github.com/warmpath/warmpath/daemon/transport/spool"
)

func serveCommand() *cobra.Command {
	var file string
	c := &cobra.Command{
		Use:   "serve",
		Short: "Route requests; SIGHUP or a change of the files reloads, SIGUSR2 upgrades, SIGTERM drains",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			m, err := unit.Find(slog.New(slog.DiscardHandler))
			if err != nil {
				return err
			}
			cf, err := conf.Load(file)
			if err != nil {
				return m.Failed(err)
			}
			log, flush := patientLogger(cf.Server, c.ErrOrStderr())
			defer flush()
			m.LogTo(log)
			limitHeap(&cf.KVCache)
			return m.Failed(serve(c.Context(), m, cf, log))
		},
	}
	configFlag(c, &file)
	return c
}

func configFlag(c *cobra.Command, file *string) {
	c.Flags().StringVarP(file, "config", "c", "warmpath.toml", "the configuration file")
}

// limitHeap leaves a part of GOMEMLIMIT to what Go's collector does not count, so that it may be the limit of the
// process or of its container: what the KV cache maps, and a tenth for compiled strategies and the kernel's buffers.
func limitHeap(c *conf.KVCache) {
	limit := debug.SetMemoryLimit(-1)
	if limit == math.MaxInt64 {
		return
	}
	if c.Open() && limit > int64(c.MaxBytes) {
		limit -= int64(c.MaxBytes)
	}
	debug.SetMemoryLimit(limit / 10 * 9)
}

// serve runs a daemon until ctx ends, or until another process has taken over, and it has drained.
func serve(ctx context.Context, m *unit.Manager, c *conf.Config, log *slog.Logger) error {
	ctx, leave := context.WithCancel(ctx)
	defer leave()
	usr2, hup := make(chan os.Signal, 1), make(chan os.Signal, 1) // at once: otherwise a signal would end the process
	signal.Notify(usr2, syscall.SIGUSR2)
	defer signal.Stop(usr2)
	signal.Notify(hup, syscall.SIGHUP)
	defer signal.Stop(hup)
	d, err := daemon.NewUnder(m, c, log)
	if err != nil {
		return err
	}
	defer d.Close()
	defer leave()
	go d.Watch(ctx)
	go func() {
		for {
			select {
			case <-hup:
				_ = d.Reload() // logged; the old configuration serves on
			case <-usr2:
				go func() { _, _ = m.Upgrade(unit.UpgradeTimeout) }() // logged; this process serves on
			case <-m.Replaced():
				leave()
				return
			case <-ctx.Done():
				return
			}
		}
	}()
	return d.Run(ctx)
}

// patientLogger returns a logger that never blocks its caller: requests write log lines, and a pipe without a reader
// would stop them. flush waits a second for the last lines. Once lines can be written again, the number of lost ones
// is logged.
func patientLogger(s conf.Server, w io.Writer) (log *slog.Logger, flush func()) {
	direct := logger(s, w)
	lines := spool.New(spool.Config{To: processLog{to: w, direct: direct}})
	return logger(s, lines), func() { lines.Close(time.Second) }
}

// processLog is the process's own log.
type processLog struct {
	to     io.Writer
	direct *slog.Logger // to the same, and may wait
}

func (l processLog) Line(line []byte) { _, _ = l.to.Write(line) }

func (processLog) Lost(bool) {}

func (l processLog) Again(lost int) {
	l.direct.Warn("this log was stuck, and lines were lost; read its pipe", "lost_lines", lost)
}

func (processLog) End() {}

// logger writes lines in the configured format. The daemon filters by level. Durations are words ("30s") in both
// formats.
func logger(s conf.Server, w io.Writer) *slog.Logger {
	o := &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Value.Kind() == slog.KindDuration {
			a.Value = slog.StringValue(a.Value.Duration().String())
		}
		return a
	}}
	if s.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(w, o))
	}
	return slog.New(slog.NewTextHandler(w, o))
}
