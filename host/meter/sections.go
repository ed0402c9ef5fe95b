package meter

import (
	"encoding/binary"
	"fmt"
	"math"
)

func (w *rewriter) types(r *reader) error {
	n := r.count()
	if n > maxTypes {
		return fmt.Errorf("meter: module has %d types; the limit is %d", n, maxTypes)
	}
	start := r.at
	for range n {
		if form := r.byte(); r.err == nil && form != typeFunc {
			return fmt.Errorf("meter: type form %#x is not a function; garbage collected types are not supported", form)
		}
		params := r.count()
		r.take(uint32(params))
		results := r.count()
		r.take(uint32(results))
		if params+results > maxArity {
			return fmt.Errorf("meter: a function type has %d parameters and results; the limit is %d", params+results, maxArity)
		}
		w.params = append(w.params, params)
	}
	w.typeSection(r.b[start:])
	return r.done("type")
}

func (w *rewriter) imports(r *reader) error {
	n := r.count()
	start := r.at
	for range n {
		mod, name := r.take(r.u32()), r.take(r.u32())
		kind := r.byte()
		if r.err == nil && kind != 0 {
			what := [...]string{"a function", "a table", "a memory", "a global", "an exception tag"}[min(kind, 4)]
			return fmt.Errorf("meter: module imports %s, %q.%q; a module owns its memory, tables and globals, "+
				"and imports functions alone", what, mod, name)
		}
		if string(mod) == Module {
			return fmt.Errorf("meter: module imports %q.%q; that name is the host's, rename it", mod, name)
		}
		if t := r.u32(); r.err == nil && int(t) >= len(w.params) {
			return fmt.Errorf("meter: import %q.%q has type %d of %d", mod, name, t, len(w.params))
		}
	}
	w.imported = n
	w.importSection(r.b[start:])
	return r.done("import")
}

func (w *rewriter) functions(r *reader) error {
	n := r.count()
	if n > maxFunctions {
		return fmt.Errorf("meter: module has %d functions; the limit is %d", n, maxFunctions)
	}
	for range n {
		t := int(r.u32())
		if r.err == nil && t >= len(w.params) {
			return fmt.Errorf("meter: a function has type %d of %d", t, len(w.params))
		}
		w.funcs = append(w.funcs, t)
	}
	b := binary.AppendUvarint(nil, uint64(n))
	for i := range w.funcs {
		b = binary.AppendUvarint(b, uint64(w.funcs[(i+1)%n]))
	}
	w.emit(secFunction, b)
	return r.done("function")
}

func (w *rewriter) start(r *reader) error {
	i, err := w.movedFunction(r.u32())
	if err != nil && r.err == nil {
		return fmt.Errorf("meter: start section: %w", err)
	}
	w.emit(secStart, binary.AppendUvarint(nil, uint64(i)))
	return r.done("start")
}

// bound is how large a table or a memory may be.
type bound struct {
	what   string
	most   uint32 // a declared maximum is lowered to it
	valid  uint32 // the largest maximum that WebAssembly allows
	remedy string
}

// limits reads a minimum and an optional maximum, and lowers the maximum.
func (b bound) limits(r *reader) (least, most uint32, err error) {
	flag := r.byte()
	least = r.u32()
	if flag > 1 {
		return 0, 0, fmt.Errorf("meter: %s has limits of kind %d: shared and 64-bit ones (threads, memory64) "+
			"are not supported", b.what, flag)
	}
	most = b.most
	if flag == 1 {
		most = r.u32()
	}
	switch {
	case r.err != nil:
	case flag == 1 && most < least:
		return 0, 0, fmt.Errorf("meter: %s has a minimum of %d over its maximum of %d", b.what, least, most)
	case most > b.valid:
		return 0, 0, fmt.Errorf("meter: %s has a maximum of %d; WebAssembly allows %d", b.what, most, b.valid)
	case least > b.most:
		return 0, 0, fmt.Errorf("meter: %s starts at %d; the limit is %d%s", b.what, least, b.most, b.remedy)
	}
	return least, min(most, b.most), nil
}

func (w *rewriter) tables(r *reader) error {
	n := r.count()
	if n > maxTables {
		return fmt.Errorf("meter: module has %d tables; the limit is %d", n, maxTables)
	}
	out := binary.AppendUvarint(nil, uint64(n))
	for range n {
		typ := r.byte()
		lo, hi, err := bound{what: "table", most: maxTable, valid: math.MaxUint32}.limits(r)
		if err != nil {
			return err
		}
		out = append(out, typ, 1)
		out = binary.AppendUvarint(binary.AppendUvarint(out, uint64(lo)), uint64(hi))
	}
	w.emit(secTable, out)
	return r.done("table")
}

func (w *rewriter) memories(r *reader) error {
	n := r.count()
	if n > 1 {
		return fmt.Errorf("meter: module has %d memories; multi-memory is not supported", n)
	}
	out := binary.AppendUvarint(nil, uint64(n))
	memory := bound{what: "memory", most: w.o.MaxPages, valid: 1 << 16,
		remedy: " pages of 64 KiB; raise memory_mb of the strategy"}
	for range n {
		lo, hi, err := memory.limits(r)
		if err != nil {
			return err
		}
		out = binary.AppendUvarint(binary.AppendUvarint(append(out, 1), uint64(lo)), uint64(hi))
	}
	w.emit(secMemory, out)
	return r.done("memory")
}

func (w *rewriter) globalsIn(r *reader) error {
	n := r.count()
	if n > maxGlobals {
		return fmt.Errorf("meter: module has %d globals; the limit is %d", n, maxGlobals)
	}
	var b []byte
	for range n {
		b = append(b, r.byte(), r.byte()) // value type, mutability
		var err error
		b, err = w.counts.constant(r, b)
		if err != nil {
			return fmt.Errorf("meter: global section: %w", err)
		}
	}
	w.globalSection(b, n)
	return r.done("global")
}

// elements copies the segments of the tables.
func (w *rewriter) elements(r *reader) error {
	b, err := (&segments{counts: &w.counts}).all(r)
	if err == nil {
		w.emit(secElement, b)
	}
	return err
}

func (w *rewriter) exports(r *reader) error {
	n := r.count()
	var b []byte
	for range n {
		name := r.take(r.u32())
		kind, index := r.byte(), r.u32()
		var err error
		if kind == 0 {
			index, err = w.movedFunction(index)
		}
		switch {
		case r.err != nil:
		case string(name) == Global:
			return fmt.Errorf("meter: module exports %q; that name is the host's, rename it", Global)
		case kind == 3 && int(index) >= w.globals:
			return fmt.Errorf("meter: export %q names global %d of %d", name, index, w.globals)
		case err != nil:
			return fmt.Errorf("meter: export %q: %w", name, err)
		}
		b = binary.AppendUvarint(append(appendBytes(b, name), kind), uint64(index))
	}
	w.exportSection(b, n)
	return r.done("export")
}
