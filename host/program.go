package host

import (
	"log/slog"
	"sync/atomic"
	"time"
)

// program is a compiled module with what holds for all of its instances. It does not change once the first instance has
// started, except for binds and own.
type program struct {
	*code
	name, sha256 string
	cfg          Config
	fuel         int64
	memory       int
	pickTime     time.Duration
	clock        func() time.Duration
	random       func() uint64
	options      []byte   // encoded
	kv           KV       // nil = not allowed, or the host has none
	store        bool     // allowed: kv
	headers      []string // that the module may ask for, in lower case
	log          *slog.Logger
	lines        limiter // of what the module itself writes to the log
	metrics      metrics
	refused      refused
	files        atomic.Uint64 // calls for a file
	dials        bool          // it has Go's package net
	shadow       bool
	rejects      bool                // where the fallback would choose, the client is turned away
	open         bool                // Options.Fallback
	own          atomic.Pointer[Own] // nil: the module does not use it
	binds        atomic.Bool         // a decision has asked for a session to be bound
	wants        uint32              // bits of abi
	mispaired    atomic.Bool         // it has named a worker for a prompt that computes none for others
}
