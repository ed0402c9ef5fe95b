package main

import (
	"context"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/warmpath/warmpath/conf"
	"github.com/warmpath/warmpath/daemon"
)

func serveCommand() *cobra.Command {
	var file string
	c := &cobra.Command{
		Use:   "serve",
		Short: "Route requests; SIGHUP or a change of the files reloads, SIGTERM drains",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			cf, err := conf.Load(file)
			if err != nil {
				return err
			}
			return serve(c.Context(), cf, logger(cf.Server, c.ErrOrStderr()))
		},
	}
	configFlag(c, &file)
	return c
}

func configFlag(c *cobra.Command, file *string) {
	c.Flags().StringVarP(file, "config", "c", "warmpath.toml", "the configuration file")
}

// serve runs a daemon until ctx ends and it has drained.
func serve(ctx context.Context, c *conf.Config, log *slog.Logger) error {
	d, err := daemon.New(c, log)
	if err != nil {
		return err
	}
	defer d.Close()
	watch, stop := context.WithCancel(ctx)
	defer stop()
	go d.Watch(watch)
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	defer signal.Stop(hup)
	go func() {
		for {
			select {
			case <-hup:
				_ = d.Reload() // logged; the old configuration serves on
			case <-watch.Done():
				return
			}
		}
	}()
	return d.Run(ctx)
}

// logger writes as the file says; conf has checked both words.
func logger(s conf.Server, w io.Writer) *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(s.LogLevel))
	o := &slog.HandlerOptions{Level: level}
	if s.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(w, o))
	}
	return slog.New(slog.NewTextHandler(w, o))
}
