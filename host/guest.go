package host

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unsafe"

	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/sys"
	"github.com/warmpath/warmpath/host/meter"
	"github.com/warmpath/warmpath/sdk/abi"
)

// instance is one running copy of a module. One goroutine at a time has it.
type instance struct {
	allowance
	ctx     context.Context // names this instance to the imports
	mod     api.Module
	mem     api.Memory
	pick    api.Function
	picking *stack       // of pick
	filter  api.Function // nil = none
	filters *stack       // of filter
	maint   api.Function // nil = none
	frame   *Frame       // of the pick under way, else nil
	kv      KV           // nil until the module is in service, and when it may not
	base    uint32       // address of the frame area
	room    int          // rows that the frame area holds
	born    int          // bytes of memory when it went into service
	calls   int          // picks since the last maint
	said    string       // the module's own reason for an error that follows
	stack   [2]uint64

	heard map[string]api.Function // exports beside wp_pick, by name, once they were called
	chain []uint64                // scratch of prefix_match_key
	tiers [maxTiers]abi.Tier      // scratch of cache_tiers
	many  []byte                  // scratch of kv_get_many

	// The time zone that it asked for last, and its name. A strategy has one, and asks for it once in 15 minutes.
	zone     *time.Location // nil: there is none of that name
	zoneName string
}

// instanceKey finds the instance in a call's context: the imports are shared by all instances of all modules.
type instanceKey struct{}

// firstRoom is the room asked for at start: 64 rows are 11.5 KiB.
const firstRoom = 64

// newInstance starts a copy of p's module and configures it.
func newInstance(ctx context.Context, p *program) (*instance, error) {
	in := &instance{allowance: allowance{program: p}}
	in.ctx = experimental.WithMemoryAllocator(context.WithValue(context.WithoutCancel(ctx), instanceKey{}, in),
		experimental.MemoryAllocatorFunc(reserve))
	in.left = p.startBudget()
	mod, err := p.rt.InstantiateModule(in.ctx, p.compiled, moduleConfig)
	if err != nil {
		if in.over != nil {
			err = in.over
		}
		return nil, fmt.Errorf("host: start module %q with a fuel of %d in %v: %w%s",
			p.name, p.fuel*setupFactor, startTime, cause(err), in.words())
	}
	in.mod, in.mem = mod, mod.Memory()
	in.fuel, _ = mod.ExportedGlobal(meter.Global).(api.MutableGlobal)
	in.pick, in.maint = mod.ExportedFunction("wp_pick"), mod.ExportedFunction("wp_maint")
	in.picking = stackOf(in.pick)
	in.filter = mod.ExportedFunction("wp_filter")
	if in.filter != nil {
		in.filters = stackOf(in.filter)
	}
	if err := in.configure(); err != nil {
		in.close()
		return nil, err
	}
	in.kv, in.born = p.kv, int(in.mem.Size())
	return in, nil
}

func (in *instance) close() { _ = in.mod.Close(in.ctx) }

// configure asks for the frame and hands the options over.
func (in *instance) configure() error {
	options := in.program.options
	room := firstRoom
	for in.program.layout.FrameSize(room) < len(options) {
		room *= 2
	}
	if err := in.grow(room, frameTime); err != nil {
		return err
	}
	f := in.mod.ExportedFunction("wp_configure")
	if f == nil {
		if len(options) > 0 {
			return fmt.Errorf("host: module %q takes no options (it exports no wp_configure); remove them", in.program.name)
		}
		return nil
	}
	in.mem.Write(in.base, options)
	in.stack[0] = uint64(len(options))
	if err := in.call(f, configureTime, "wp_configure"); err != nil {
		return err
	}
	if code := int32(in.stack[0]); code != 0 {
		words := in.words()
		if words == "" {
			words = " and says nothing; see which options it takes, and have it call error"
		}
		return fmt.Errorf("host: module %q is not ready: wp_configure answers errno %d%s", in.program.name, code, words)
	}
	return nil
}

// grow asks for a frame area of n rows.
func (in *instance) grow(n int, limit time.Duration) error {
	in.stack[0] = uint64(n)
	in.room = 0
	if err := in.call(in.mod.ExportedFunction("wp_frame"), limit, "wp_frame"); err != nil {
		return err
	}
	base, size := uint32(in.stack[0]), in.program.layout.FrameSize(n)
	if base%8 != 0 || uint64(base)+uint64(size) > uint64(in.mem.Size()) {
		return fmt.Errorf("host: module %q: wp_frame(%d) gives address %d, which is unaligned or leaves its memory of "+
			"%d bytes; want %d bytes at a multiple of 8", in.program.name, n, base, in.mem.Size(), size)
	}
	in.base, in.room = base, n
	return nil
}

// call runs a setup function on in.stack with a fuel and a time of its own.
func (in *instance) call(f api.Function, limit time.Duration, name string) error {
	return in.bounded(f, in.program.fuel*setupFactor, limit, name)
}

// export returns the export of that name. To look for it costs more than to call it.
func (in *instance) export(name string) api.Function {
	f := in.heard[name]
	if f == nil {
		f = in.mod.ExportedFunction(name)
		if in.heard == nil {
			in.heard = map[string]api.Function{}
		}
		in.heard[name] = f
	}
	return f
}

// notify makes the call of a notice, with the fuel and the time of a pick.
func (in *instance) notify(n notice) error {
	f := in.export(n.export)
	in.mem.Write(in.base, n.records)
	in.said = ""
	in.stack[0] = n.argument
	return in.bounded(f, in.program.fuel, in.program.pickTime, n.export)
}

// plan calls wp_plan with as many conversations at a time as fit into the frame, and returns their values as the guest
// leaves them.
func (in *instance) plan(talks []abi.Talk) (values []float64, err error) {
	room := in.program.layout.FrameSize(in.room) / abi.TalkSize
	for part := range slices.Chunk(talks, room) {
		b := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(part))), len(part)*abi.TalkSize)
		if err := in.notify(notice{export: "wp_plan", records: b, argument: uint64(len(part))}); err != nil {
			return nil, err
		}
		area, _ := in.mem.Read(in.base, uint32(len(b))) // notify wrote it, and memories never shrink
		for ; len(area) > 0; area = area[abi.TalkSize:] {
			values = append(values, math.Float64frombits(binary.LittleEndian.Uint64(area)))
		}
	}
	return values, nil
}

// bounded runs f on in.stack within fuel and limit.
func (in *instance) bounded(f api.Function, fuel int64, limit time.Duration, name string) error {
	in.running = stackOf(f)
	in.begin(newBudget(fuel, stepFuel, limit, in.program.clock()))
	err := f.CallWithStack(in.ctx, in.stack[:])
	switch {
	case err == nil:
		return nil
	case in.over == errNoFuel:
		return fmt.Errorf("host: module %q: %s used up its fuel of %d; look for an endless loop or recursion, a wait or "+
			"much memory at once, make it shorter or raise fuel", in.program.name, name, fuel)
	case in.over == errNoTime:
		return fmt.Errorf("host: module %q: %s is not done after %v; make it shorter", in.program.name, name, limit)
	case in.over == errNoStack:
		return fmt.Errorf("host: module %q: %s calls itself so deep that its stack takes over %d KB; have it recurse "+
			"less or raise memory_mb, of which this is one part in %d",
			in.program.name, name, in.program.memory/stackShare>>10, stackShare)
	}
	return fmt.Errorf("host: module %q: %s: %w%s", in.program.name, name, cause(err), in.words())
}

// words returns the module's own message about its error, and clears it.
func (in *instance) words() string {
	if in.said == "" {
		return ""
	}
	s := fmt.Sprintf(" (it says %q)", in.said)
	in.said = ""
	return s
}

// maintain lets the guest's runtime collect garbage.
func (in *instance) maintain() error {
	in.calls = 0
	if in.maint == nil {
		return nil
	}
	return in.call(in.maint, maintTime, "wp_maint")
}

// cause shortens wazero's error to its first line; the stack trace behind it names wasm functions by number.
func cause(err error) error {
	if err == nil {
		return nil
	}
	var exit *sys.ExitError
	if errors.As(err, &exit) {
		return fmt.Errorf("it exits with code %d", exit.ExitCode())
	}
	first, _, _ := strings.Cut(err.Error(), "\n")
	return errors.New(first)
}
