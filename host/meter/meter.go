package meter

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"unicode/utf8"
)

// Global is the reserved name under which a metered module exports the fuel it may burn before it asks for more, a
// mutable i64.
const Global = "warmpath:fuel"

// Module and Refill name the import that a metered module calls when its fuel is below zero, () -> (). It sets Global
// to what the module may burn next, or ends the call.
const (
	Module = "warmpath:meter"
	Refill = "refill"
)

// Options bounds one module. The zero value means the defaults below.
type Options struct {
	// Budget is the fuel at instantiation, before the first refill: start code runs before the host can set it. Default
	// 10,000.
	Budget int64
	// MaxPages caps the memory, in pages of 64 KiB: the declared maximum is lowered to it. Default 256 (16 MiB).
	MaxPages uint32
}

// Bounds on what is read at all. A standard Go guest has 1.8-2.3 MiB, 3,000 functions and a table as long.
const (
	MaxModule    = 64 << 20 // bytes of the whole module
	maxFunctions = 1 << 17
	maxTypes     = 1 << 14
	maxArity     = 256     // parameters and results of one type
	maxLocals    = 1 << 12 // of one function
	maxTable     = 1 << 17 // elements; a declared maximum is lowered to it
	maxTables    = 16
	maxGlobals   = 1 << 14
	maxDepth     = 1 << 12 // nested blocks
)

// rewriter is one module on its way through.
type rewriter struct {
	counts
	bounds    compileBounds
	o         Options
	out       []byte
	hasTypes  bool
	hasImport bool
	hasGlob   bool
	hasExp    bool
}

// Rewrite returns a copy of a binary module that pays fuel as it runs; see the package documentation for what costs
// what. It refuses what it does not know. It does not validate types: the result is valid exactly when the original is,
// so compiling the result validates the original.
func Rewrite(wasm []byte, o Options) ([]byte, error) {
	out, _, err := rewrite(wasm, o)
	return out, err
}

// rewrite is Rewrite; it returns the nanoseconds too that the result takes to compile, at most.
func rewrite(wasm []byte, o Options) (out []byte, work float64, err error) {
	if o.Budget <= 0 {
		o.Budget = 10_000
	}
	if o.MaxPages == 0 {
		o.MaxPages = 256
	}
	if len(wasm) > MaxModule {
		return nil, 0, fmt.Errorf("meter: module has %d bytes; the limit is %d", len(wasm), MaxModule)
	}
	if !bytes.HasPrefix(wasm, []byte("\x00asm\x01\x00\x00\x00")) {
		return nil, 0, fmt.Errorf("meter: not a core wasm module of version 1; " +
			"build it with GOOS=wasip1 GOARCH=wasm go build -buildmode=c-shared")
	}
	w := &rewriter{o: o, out: append(make([]byte, 0, len(wasm)+len(wasm)/3), wasm[:8]...)}
	r := &reader{b: wasm, at: 8}
	last := 0
	for r.more() {
		id := r.byte()
		body := r.take(r.u32())
		if r.err != nil {
			break
		}
		if rank := order(id); id != secCustom {
			if rank <= last {
				return nil, 0, fmt.Errorf("meter: section %d is repeated, unknown or out of order", id)
			}
			w.before(rank)
			last = rank
		}
		if id == secCustom && !r.more() && onlyName(body) {
			return nil, 0, fmt.Errorf("meter: the module ends in a custom section without contents, " +
				"which wazero does not read; leave it out")
		}
		if err := w.section(id, body); err != nil {
			return nil, 0, err
		}
	}
	if r.err != nil {
		return nil, 0, fmt.Errorf("meter: %w", r.err)
	}
	w.before(order(secData) + 1)
	return w.out, w.bounds.work, nil
}

// onlyName reports whether nothing stands behind a custom section's name.
func onlyName(body []byte) bool {
	r := &reader{b: body}
	r.take(r.u32())
	return !r.more()
}

// order gives a section's place: data count (12) stands between element and code. 0 = unknown.
func order(id byte) int {
	switch {
	case id == secDataCount:
		return 2*int(secElement) + 1
	case id >= secType && id <= secData:
		return 2 * int(id)
	}
	return 0
}

// before writes the sections that we add to and the module does not have, when a later section is about to come.
func (w *rewriter) before(rank int) {
	if rank > order(secType) && !w.hasTypes {
		w.typeSection(nil)
	}
	if rank > order(secImport) && !w.hasImport {
		w.importSection(nil)
	}
	if rank > order(secGlobal) && !w.hasGlob {
		w.globalSection(nil, 0)
	}
	if rank > order(secExport) && !w.hasExp {
		w.exportSection(nil, 0)
	}
}

func (w *rewriter) emit(id byte, body []byte) { w.out = appendBytes(append(w.out, id), body) }

func (w *rewriter) section(id byte, body []byte) error {
	r := &reader{b: body}
	switch id {
	case secCustom:
		name := r.take(r.u32())
		if r.err != nil {
			return fmt.Errorf("meter: custom section: %w", r.err)
		}
		if !utf8.Valid(name) {
			return fmt.Errorf("meter: a custom section's name is not valid UTF-8")
		}
		if string(name) == "name" {
			w.emit(id, body) // kept: the names stand in the stack trace of a trap
		}
		return nil
	case secType:
		return w.types(r)
	case secImport:
		return w.imports(r)
	case secFunction:
		return w.functions(r)
	case secTable:
		return w.tables(r)
	case secMemory:
		return w.memories(r)
	case secGlobal:
		return w.globalsIn(r)
	case secExport:
		return w.exports(r)
	case secStart:
		return w.start(r)
	case secElement:
		return w.elements(r)
	case secCode:
		return w.code(r)
	}
	w.emit(id, body)
	return nil
}

// typeSection writes the types, given as bytes, and that of the refill behind them.
func (w *rewriter) typeSection(types []byte) {
	w.hasTypes = true
	b := append(binary.AppendUvarint(nil, uint64(len(w.params)+1)), types...)
	w.emit(secType, append(b, typeFunc, 0, 0))
}

// importSection writes the imports, given as bytes, and the refill behind them.
func (w *rewriter) importSection(imports []byte) {
	w.hasImport = true
	b := append(binary.AppendUvarint(nil, uint64(w.imported+1)), imports...)
	b = append(appendBytes(appendBytes(b, []byte(Module)), []byte(Refill)), 0)
	w.emit(secImport, binary.AppendUvarint(b, uint64(len(w.params))))
}

// globalSection writes n globals given as bytes, and the fuel behind them.
func (w *rewriter) globalSection(globals []byte, n int) {
	w.hasGlob, w.globals = true, n
	b := append(binary.AppendUvarint(nil, uint64(n+1)), globals...)
	b = append(appendSigned(append(b, typeI64, 1, opI64Const), w.o.Budget), opEnd)
	w.emit(secGlobal, b)
}

func (w *rewriter) exportSection(exports []byte, n int) {
	w.hasExp = true
	b := append(binary.AppendUvarint(nil, uint64(n+1)), exports...)
	b = append(appendBytes(b, []byte(Global)), 3)
	w.emit(secExport, binary.AppendUvarint(b, uint64(w.globals)))
}
