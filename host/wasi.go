package host

import (
	"bytes"
	"context"
	"encoding/binary"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/sys"
)

// What a standard Go guest imports of WASI, as stubs: there are no files, no arguments, no environment, no sockets, and
// a guest that sleeps does not sleep. Without package os a guest imports ten of them; with it (package fmt is enough)
// about thirty, of which those that name a file answer that there is none, and count that.

const wasiModule = "wasi_snapshot_preview1"

// Errno values of WASI.
const (
	wasiOK    = 0
	wasiBadF  = 8
	wasiFault = 21
	wasiInval = 28
	wasiNoEnt = 44
)

type wasiFunc struct {
	params, results []api.ValueType
	f               importFunc
}

// wasi reads a signature of i and I (i32 and i64 parameters); the result is an errno, but for proc_exit.
func wasi(params string, f importFunc) wasiFunc {
	w := wasiFunc{results: []api.ValueType{api.ValueTypeI32}, f: f}
	for _, p := range params {
		if p == 'I' {
			w.params = append(w.params, api.ValueTypeI64)
		} else {
			w.params = append(w.params, api.ValueTypeI32)
		}
	}
	return w
}

func always(code uint64) importFunc {
	return func(_ *instance, _ api.Memory, st []uint64) { st[0] = code }
}

// noFile answers that there is none, and counts the call. path is the argument that has the address of the file's name,
// before its length; 0 = it has none. A Go guest looks for its time zone whether it needs one or not.
func noFile(code uint64, path int) importFunc {
	return func(in *instance, mem api.Memory, st []uint64) {
		var name []byte
		if path > 0 {
			name, _ = mem.Read(uint32(st[path]), min(uint32(st[path+1]), maxLine))
		}
		st[0] = code
		if !bytes.HasSuffix(name, []byte("etc/localtime")) && !bytes.Contains(name, []byte("zoneinfo")) {
			in.program.askFile(oneLine(string(name)))
		}
	}
}

// folder is the descriptor of the one folder that a module is told of. It has no files. Without it a guest's library
// knows of no file system, and the host would not see that the module asks for files.
const folder = 3

// ofFolder answers about that folder by what write puts into the module's memory.
func ofFolder(write func(mem api.Memory, st []uint64) bool) importFunc {
	return func(_ *instance, mem api.Memory, st []uint64) {
		is := uint32(st[0]) == folder
		st[0] = wasiBadF
		if is && write(mem, st) {
			st[0] = wasiOK
		}
	}
}

// writePrestat: it is a folder, whose name has one byte.
func writePrestat(mem api.Memory, st []uint64) bool { return mem.WriteUint64Le(uint32(st[1]), 1<<32) }

func writeFolder(mem api.Memory, st []uint64) bool {
	return st[2] > 0 && mem.WriteByte(uint32(st[1]), '/')
}

var wasiFuncs = map[string]wasiFunc{
	"args_get": wasi("ii", always(wasiOK)), "args_sizes_get": wasi("ii", wasiSizes),
	"environ_get": wasi("ii", always(wasiOK)), "environ_sizes_get": wasi("ii", wasiSizes),
	"clock_time_get": wasi("iIi", wasiClock), "random_get": wasi("ii", wasiRandom),
	"fd_write": wasi("iiii", wasiWrite), "poll_oneoff": wasi("iiii", wasiPoll),
	"sched_yield": wasi("", always(wasiOK)),
	"proc_exit":   {params: []api.ValueType{api.ValueTypeI32}, f: wasiExit},

	"fd_close": wasi("i", always(wasiBadF)), "fd_fdstat_get": wasi("ii", always(wasiBadF)),
	"fd_fdstat_set_flags": wasi("ii", always(wasiBadF)), "fd_prestat_get": wasi("ii", ofFolder(writePrestat)),
	"fd_prestat_dir_name": wasi("iii", ofFolder(writeFolder)), "fd_read": wasi("iiii", noFile(wasiBadF, 0)),
	"fd_seek": wasi("iIii", always(wasiBadF)), "fd_filestat_get": wasi("ii", always(wasiBadF)),
	"fd_filestat_set_size": wasi("iI", always(wasiBadF)), "fd_fdstat_set_rights": wasi("iII", always(wasiBadF)),
	"fd_pread": wasi("iiiIi", noFile(wasiBadF, 0)), "fd_pwrite": wasi("iiiIi", noFile(wasiBadF, 0)),
	"fd_readdir": wasi("iiiIi", noFile(wasiBadF, 0)), "fd_sync": wasi("i", always(wasiBadF)),
	"path_create_directory": wasi("iii", noFile(wasiNoEnt, 1)), "path_filestat_get": wasi("iiiii", noFile(wasiNoEnt, 2)),
	"path_filestat_set_times": wasi("iiiiIIi", noFile(wasiNoEnt, 2)), "path_link": wasi("iiiiiii", noFile(wasiNoEnt, 2)),
	"path_open": wasi("iiiiiIIii", noFile(wasiNoEnt, 2)), "path_readlink": wasi("iiiiii", noFile(wasiNoEnt, 1)),
	"path_remove_directory": wasi("iii", noFile(wasiNoEnt, 1)), "path_rename": wasi("iiiiii", noFile(wasiNoEnt, 1)),
	"path_symlink": wasi("iiiii", noFile(wasiNoEnt, 0)), "path_unlink_file": wasi("iii", noFile(wasiNoEnt, 1)),
}

// dials reports whether a Go guest has package net, by a name in its table of functions. It imports nothing for it: the
// package has no sockets on WASI, and each connection fails.
func dials(wasm []byte) bool { return bytes.Contains(wasm, []byte("net.(*Dialer).DialContext")) }

func instantiateWASI(ctx context.Context, rt wazero.Runtime) error {
	b := rt.NewHostModuleBuilder(wasiModule)
	for name, w := range wasiFuncs {
		b.NewFunctionBuilder().WithGoModuleFunction(wrap(w.f), w.params, w.results).Export(name)
	}
	_, err := b.Instantiate(ctx)
	return err
}

// wasiSizes: no arguments, no environment.
func wasiSizes(_ *instance, mem api.Memory, st []uint64) {
	if mem.WriteUint32Le(uint32(st[0]), 0) && mem.WriteUint32Le(uint32(st[1]), 0) {
		st[0] = wasiOK
	} else {
		st[0] = wasiFault
	}
}

// wasiClock gives the wall clock for 0 and a steady one for all others. For a stepped module, both give the time of the
// request that it judges. Outside of a pick they give 1, because Go's runtime does not start at 0.
func wasiClock(in *instance, mem api.Memory, st []uint64) {
	now := int64(1)
	switch {
	case !in.program.cfg.Stepped && uint32(st[0]) == 0:
		now = time.Now().UnixNano()
	case !in.program.cfg.Stepped:
		now = int64(time.Since(epoch))
	case in.frame != nil:
		now = in.frame.Header.Now
	}
	if mem.WriteUint64Le(uint32(st[2]), uint64(now)) {
		st[0] = wasiOK
	} else {
		st[0] = wasiFault
	}
}

func wasiRandom(in *instance, mem api.Memory, st []uint64) {
	b, ok := mem.Read(uint32(st[0]), uint32(st[1]))
	if !ok {
		st[0] = wasiFault
		return
	}
	in.pay(int64(len(b)))
	for len(b) >= 8 {
		binary.LittleEndian.PutUint64(b, in.program.random())
		b = b[8:]
	}
	for i := range b {
		b[i] = byte(in.program.random())
	}
	st[0] = wasiOK
}

// wasiWrite keeps the beginning of a pick's output as the module's message: a Go guest prints why it panics, and an
// author prints what he wants to see at level debug.
func wasiWrite(in *instance, mem api.Memory, st []uint64) {
	fd, vec, n, out := uint32(st[0]), uint32(st[1]), uint32(st[2]), uint32(st[3])
	if fd != 1 && fd != 2 {
		st[0] = wasiBadF
		return
	}
	var total uint64
	for i := range min(n, 16) {
		entry, ok := mem.Read(vec+8*i, 8)
		if !ok {
			st[0] = wasiFault
			return
		}
		at, size := binary.LittleEndian.Uint32(entry), binary.LittleEndian.Uint32(entry[4:])
		b, ok := mem.Read(at, size)
		if !ok {
			st[0] = wasiFault
			return
		}
		total += uint64(size)
		in.pay(1)
		if room := maxLine - len(in.said); room > 0 {
			in.payBytes(uint32(len(in.said) + min(len(b), room)))
			in.said += string(b[:min(len(b), room)])
		}
	}
	st[0] = wasiOK
	if !mem.WriteUint32Le(out, uint32(min(total, 1<<31))) {
		st[0] = wasiFault
	}
}

// wasiPoll reports at once that every clock has rung, so that a guest cannot hold a processor by sleeping.
func wasiPoll(in *instance, mem api.Memory, st []uint64) {
	subs, events, n, out := uint32(st[0]), uint32(st[1]), uint32(st[2]), uint32(st[3])
	if n == 0 || n > 64 {
		st[0] = wasiInval
		return
	}
	from, ok1 := mem.Read(subs, n*48)
	to, ok2 := mem.Read(events, n*32)
	if !ok1 || !ok2 || !mem.WriteUint32Le(out, n) {
		st[0] = wasiFault
		return
	}
	in.pay(int64(n))
	for i := range int(n) {
		sub, event := from[48*i:48*i+48], to[32*i:32*i+32]
		userdata, kind := binary.LittleEndian.Uint64(sub), sub[8]
		clear(event)
		binary.LittleEndian.PutUint64(event, userdata)
		event[10] = kind
	}
	st[0] = wasiOK
}

// wasiExit ends the call: wazero turns the panic of a host function into the error of the call.
func wasiExit(_ *instance, _ api.Memory, st []uint64) {
	panic(sys.NewExitError(uint32(st[0])))
}
