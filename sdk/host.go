package sdk

import (
	"github.com/warmpath/warmpath/sdk/abi"
	"github.com/warmpath/warmpath/sdk/internal/imports"
)

// Level is the severity of a log line.
type Level int32

// The levels of [Log].
const (
	Debug = Level(abi.LevelDebug)
	Info  = Level(abi.LevelInfo)
	Warn  = Level(abi.LevelWarn)
	Error = Level(abi.LevelError)
)

// Log writes a line to the router's log, under the module's name. Lines are rate-limited. Never log what a client sent.
func Log(l Level, text string) { imports.Log(int32(l), text) }

// Logs reports whether a line of that level would be written. Ask before building a line that costs time.
func Logs(l Level) bool { return int32(l) >= imports.LogLevel() }

// Metric adds value to the module's own counter of that name.
func Metric(name string, value float64) { imports.Metric(name, value) }

// Session is the request's session key, "" without one. Like every text it is copied at each call; [Request].Session is
// its hash and costs nothing.
func Session() string { return text(abi.StrSession, 0) }

// Model is the name of the request's model, "" if it names none.
func Model() string { return text(abi.StrModel, 0) }

// Tenant is the request's cache salt, "" without one.
func Tenant() string { return text(abi.StrTenant, 0) }

// Caller is the name of the key that the client used, as the operator gave it, "" without one.
func Caller() string { return text(abi.StrCaller, 0) }

// Header returns the request's header of that name, "" if the request has none or the strategy's allow list does not
// have "headers:" and its name in lower case.
func Header(name string) string {
	b := make([]byte, max(len(name), 256))
	copy(b, name)
	n := imports.Str(abi.StrHeader, int32(len(name)), b)
	if int(n) > len(b) {
		b = make([]byte, n)
		copy(b, name)
		n = imports.Str(abi.StrHeader, int32(len(name)), b)
	}
	if n < 0 || int(n) > len(b) {
		return ""
	}
	return string(b[:n])
}

// WorkerID is the id of worker i.
func WorkerID(i int) string { return text(abi.StrWorker, int32(i)) }

func text(kind, index int32) string {
	b := make([]byte, 128)
	n := imports.Str(kind, index, b)
	if int(n) > len(b) {
		b = make([]byte, n)
		n = imports.Str(kind, index, b)
	}
	if n < 0 || int(n) > len(b) {
		return ""
	}
	return string(b[:n])
}
