package plugins

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"unsafe"

	"github.com/tetratelabs/wazero"
	wasmapi "github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/warmpath/warmpath/sdk/abi"
)

// The guests of these tests are built from the sources as they are now, not taken from builtin/, which may be older.
var builds sync.Map // package path -> func() ([]byte, error)

func build(t testing.TB, pkg string) []byte {
	t.Helper()
	once, _ := builds.LoadOrStore(pkg, sync.OnceValues(func() ([]byte, error) {
		dir, err := os.MkdirTemp("", "warmpath")
		if err != nil {
			return nil, err
		}
		defer os.RemoveAll(dir)
		out := filepath.Join(dir, "out.wasm")
		cmd := exec.Command("go", "build", "-buildmode=c-shared", "-trimpath", "-ldflags=-s -w -buildid=", "-o", out, pkg)
		cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
		if text, err := cmd.CombinedOutput(); err != nil {
			t.Logf("go build %s: %s", pkg, text)
			return nil, err
		}
		return os.ReadFile(out)
	}))
	wasm, err := once.(func() ([]byte, error))()
	if err != nil {
		t.Fatal(err)
	}
	return wasm
}

// guest is one instance, driven by the contract alone: no fuel, no pool, so that what is compared and measured here is
// the strategy and its SDK. The host's own tests and benchmarks add the rest.
type guest struct {
	frame  []byte
	pick   wasmapi.Function
	stack  [1]uint64
	rows   int
	errors []string // the texts it reported of failing calls
}

func instantiate(t testing.TB, wasm []byte, rows int) *guest {
	t.Helper()
	ctx := context.Background()
	rt := wazero.NewRuntime(ctx)
	t.Cleanup(func() { rt.Close(ctx) })
	wasi_snapshot_preview1.MustInstantiate(ctx, rt)
	g := &guest{rows: rows}
	if _, err := rt.NewHostModuleBuilder(abi.Module).
		NewFunctionBuilder().WithFunc(func(int32, int32, int32) {}).Export("log").
		NewFunctionBuilder().WithFunc(func(_ context.Context, m wasmapi.Module, p, n uint32) {
		text, _ := m.Memory().Read(p, n)
		g.errors = append(g.errors, string(text))
	}).Export("error").Instantiate(ctx); err != nil {
		t.Fatal(err)
	}
	m, err := rt.InstantiateWithConfig(ctx, wasm, wazero.NewModuleConfig().WithStartFunctions("_initialize"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range abi.Exports {
		if m.ExportedFunction(f.Name) == nil && !f.Optional {
			t.Fatalf("the module exports no %s", f.Name)
		}
	}
	g.pick = m.ExportedFunction("wp_pick")
	at := g.call(t, m, "wp_frame", uint64(rows))
	if m.ExportedFunction("wp_configure") != nil {
		if errno := g.call(t, m, "wp_configure", 0); errno != 0 {
			t.Fatalf("wp_configure(0) = %d, %q; want 0", int32(errno), g.errors)
		}
	}
	var ok bool
	if g.frame, ok = m.Memory().Read(uint32(at), uint32(abi.FrameSize(rows))); !ok || at%8 != 0 {
		t.Fatalf("wp_frame(%d) = %#x: not aligned, or outside of the memory", rows, at)
	}
	return g
}

func (g *guest) call(t testing.TB, m wasmapi.Module, name string, arg uint64) uint64 {
	t.Helper()
	res, err := m.ExportedFunction(name).Call(context.Background(), arg)
	if err != nil {
		t.Fatal(err)
	}
	return res[0]
}

// write puts a request into the frame. The memory must not have grown since, which holds for strategies that do not
// allocate.
func (g *guest) write(h *abi.Header, rows []abi.Row) {
	copy(g.frame, unsafe.Slice((*byte)(unsafe.Pointer(h)), abi.HeaderSize))
	copy(g.frame[abi.HeaderSize:], unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(rows))), len(rows)*abi.RowSize))
}

func (g *guest) run(t testing.TB) uint64 {
	if err := g.pick.CallWithStack(context.Background(), g.stack[:]); err != nil {
		t.Fatal(err)
	}
	return g.stack[0]
}

// order returns the alternatives that the guest has written.
func (g *guest) order() []uint32 {
	h := (*abi.Header)(unsafe.Pointer(unsafe.SliceData(g.frame)))
	at := g.frame[abi.HeaderSize+g.rows*abi.RowSize:]
	return unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(at))), h.OrderLen)
}
