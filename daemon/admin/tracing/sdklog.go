package tracing

import (
	"context"
	"log/slog"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel"

	"github.com/warmpath/warmpath/daemon/transport/gate"
)

// logSDK sends the SDK's own log lines to log. The SDK has one logger a process.
func logSDK(log *slog.Logger) {
	otel.SetLogger(logr.FromSlogHandler(sdkLog{log}))
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		log.Warn("OpenTelemetry's SDK reports an error", "error", gate.Cut(err.Error()))
	}))
}

// sdkLog keeps only the message of the SDK's own lines: their attributes repeat what is wrong in
// OTEL_EXPORTER_OTLP_HEADERS, a secret.
type sdkLog struct{ log *slog.Logger }

// Enabled implements slog.Handler. The SDK warns one level below slog's Info.
func (s sdkLog) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelInfo-1 }

// Handle implements slog.Handler.
func (s sdkLog) Handle(_ context.Context, r slog.Record) error {
	s.log.Warn("OpenTelemetry's SDK: " + r.Message + " (look at the OTEL_ variables of the environment)")
	return nil
}

// WithAttrs implements slog.Handler.
func (s sdkLog) WithAttrs([]slog.Attr) slog.Handler { return s }

// WithGroup implements slog.Handler.
func (s sdkLog) WithGroup(string) slog.Handler { return s }
