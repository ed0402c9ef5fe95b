package host

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/warmpath/warmpath/host/meter"
	"github.com/warmpath/warmpath/sdk/abi"
)

// Options are of one strategy. The zero value means the Config's.
type Options struct {
	Values      map[string]string // given to the module's wp_configure
	Allow       []string          // what the module may use beside its frame: "kv", "headers:x-tenant"
	KV          KV                // in place of the Config's; nil = that one
	Fuel        int64
	MemoryBytes int
	PickTime    time.Duration
	Pool        string // for the log
	Shadow      bool   // its picks serve no request: the log says so
	Reject      bool   // what the fallback would answer is rejected with 503
	Fallback    bool   // without it a module that filters has Reject: what fails must not open a fence
	Seed        uint64 // of a module's chance, if the host is Stepped
}

// moduleConfig: reactors start with _initialize; no name, so that a module can be started many times.
var moduleConfig = wazero.NewModuleConfig().WithName("").WithStartFunctions("_initialize")

const pageBytes = 64 << 10

// Load makes a strategy of a binary module: meter, compile, verify names and signatures, start one instance,
// configure it and try it on a made-up request. What another strategy has of the same module is used again. A module
// that fails any of these is refused with the reason and the remedy.
func (h *Host) Load(ctx context.Context, name string, wasm []byte, o Options) (*Strategy, error) {
	if !h.loaded.begin() {
		return nil, errClosed
	}
	s, err := h.load(ctx, name, wasm, o)
	if err != nil {
		h.loaded.end(nil)
		return nil, err
	}
	if !h.loaded.add(s) {
		s.Close(ctx)
		return nil, errClosed
	}
	return s, nil
}

// errClosed is the error of a load when the daemon ends.
var errClosed = errors.New("host: the sandbox is closed: the daemon ends")

func (h *Host) load(ctx context.Context, name string, wasm []byte, o Options) (*Strategy, error) {
	p, err := h.newProgram(name, wasm, o)
	if err != nil {
		return nil, err
	}
	p.code, err = h.codes.take(ctx, name, wasm,
		codeKey{p.sha256, meter.Options{Budget: p.startBudget().slice, MaxPages: uint32(p.memory / pageBytes)}})
	if err != nil {
		return nil, err
	}
	if p.owns {
		p.own.Store(new(Own))
	}
	s := &Strategy{program: p, host: h}
	if err := s.start(ctx); err != nil {
		h.codes.release(ctx, p.code)
		return nil, err
	}
	return s, nil
}

// newProgram checks and encodes the options.
func (h *Host) newProgram(name string, wasm []byte, o Options) (*program, error) {
	sum := sha256.Sum256(wasm)
	p := &program{
		name: name, sha256: hex.EncodeToString(sum[:]), cfg: h.cfg, clock: h.clock, log: h.cfg.Log.With("strategy", name),
		dials: dials(wasm), fuel: o.Fuel, memory: o.MemoryBytes, pickTime: o.PickTime, shadow: o.Shadow, rejects: o.Reject,
		open: o.Fallback,
	}
	if p.fuel <= 0 {
		p.fuel = h.cfg.Fuel
	}
	if p.pickTime <= 0 {
		p.pickTime = h.cfg.PickTime
	}
	p.random = rand.Uint64
	if h.cfg.Stepped {
		p.random = rand.New(rand.NewPCG(o.Seed, 0)).Uint64
		p.pickTime = time.Hour // of a clock that stands
	}
	if o.Pool != "" {
		p.log = p.log.With("pool", o.Pool)
	}
	if p.memory <= 0 {
		p.memory = h.cfg.MemoryBytes
	}
	p.memory = p.memory / pageBytes * pageBytes
	if p.memory <= 0 || p.memory > 1<<32 {
		return nil, fmt.Errorf("host: module %q has a memory limit of %d bytes; want 64 KiB to 4 GiB", name, o.MemoryBytes)
	}
	store, headers, err := permissions(name, o.Allow)
	if err != nil {
		return nil, err
	}
	p.headers, p.store = headers, store
	if store {
		p.kv = h.cfg.KV
		if o.KV != nil {
			p.kv = o.KV
		}
	}
	for _, k := range slices.Sorted(maps.Keys(o.Values)) {
		p.options = abi.AppendOption(p.options, k, o.Values[k])
	}
	if len(p.options) > abi.MaxOptions {
		return nil, fmt.Errorf("host: options of module %q take %d bytes; the limit is %d",
			name, len(p.options), abi.MaxOptions)
	}
	return p, nil
}

// permissions reads what else the module may use: the store, and certain header fields.
func permissions(name string, allow []string) (store bool, headers []string, err error) {
	for _, a := range allow {
		header, isHeader := strings.CutPrefix(a, "headers:")
		switch {
		case a == "kv":
			store = true
		case isHeader && header != "" && len(header) <= maxHeaderName && header == strings.ToLower(header):
			headers = append(headers, header)
		default:
			return false, nil, fmt.Errorf(`host: module %q: allow has %q, which is not known; `+
				`want "kv", or "headers:" and a name in lower case, as "headers:x-tenant"`, name, a)
		}
	}
	return store, headers, nil
}
