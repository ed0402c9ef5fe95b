package meter

import (
	"encoding/binary"
	"fmt"
)

func (w *rewriter) types(r *reader) error {
	n := r.count()
	if n > maxTypes {
		return fmt.Errorf("meter: module has %d types; the limit is %d", n, maxTypes)
	}
	for range n {
		if form := r.byte(); r.err == nil && form != 0x60 {
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
	return r.done("type")
}

func (w *rewriter) imports(r *reader) error {
	for range r.count() {
		mod, name := r.take(r.u32()), r.take(r.u32())
		kind := r.byte()
		if r.err == nil && kind != 0 {
			what := [...]string{"a function", "a table", "a memory", "a global", "an exception tag"}[min(kind, 4)]
			return fmt.Errorf("meter: module imports %s, %q.%q; a module owns its memory, tables and globals, and imports functions alone", what, mod, name)
		}
		r.u32()
	}
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
	return r.done("function")
}

// limits reads a minimum and an optional maximum, and caps the maximum.
func limits(r *reader, what string, cap uint32, remedy string) (min, max uint32, err error) {
	flag := r.byte()
	min = r.u32()
	if flag > 1 {
		return 0, 0, fmt.Errorf("meter: %s has limits of kind %d: shared and 64-bit ones (threads, memory64) are not supported", what, flag)
	}
	max = cap
	if flag == 1 {
		max = r.u32()
		if max < min && r.err == nil {
			return 0, 0, fmt.Errorf("meter: %s has a minimum of %d over its maximum of %d", what, min, max)
		}
	}
	if r.err == nil && min > cap {
		return 0, 0, fmt.Errorf("meter: %s starts at %d; the limit is %d%s", what, min, cap, remedy)
	}
	if max > cap {
		max = cap
	}
	return min, max, nil
}

func (w *rewriter) tables(r *reader) error {
	n := r.count()
	if n > maxTables {
		return fmt.Errorf("meter: module has %d tables; the limit is %d", n, maxTables)
	}
	out := binary.AppendUvarint(nil, uint64(n))
	for range n {
		typ := r.byte()
		lo, hi, err := limits(r, "table", maxTable, "")
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
	for range n {
		lo, hi, err := limits(r, "memory", w.o.MaxPages, " pages of 64 KiB; raise memory_mb of the strategy")
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
	start := r.at
	for range n {
		r.byte() // value type
		r.byte() // mutability
		if err := constant(r); err != nil {
			return err
		}
	}
	w.globalSection(r.b[start:r.at], n)
	return r.done("global")
}

// constant passes an initialiser. global.get may only name imported globals there, and there are none.
func constant(r *reader) error {
	for r.more() {
		switch op := r.byte(); op {
		case 0x0b:
			return nil
		case 0x41:
			r.leb(5)
		case 0x42:
			r.leb(10)
		case 0x43:
			r.take(4)
		case 0x44:
			r.take(8)
		case 0xd0, 0xd2:
			r.leb(5)
		case 0x23:
			return fmt.Errorf("meter: an initialiser reads a global; only imported ones may be read there, and a module imports none")
		default:
			return fmt.Errorf("meter: an initialiser has %s; it is not supported", name(op))
		}
	}
	return r.done("global")
}

func (w *rewriter) exports(r *reader) error {
	n := r.count()
	start := r.at
	for range n {
		name := r.take(r.u32())
		kind, index := r.byte(), r.u32()
		switch {
		case r.err != nil:
		case string(name) == Global:
			return fmt.Errorf("meter: module exports %q; that name is the host's, rename it", Global)
		case kind == 3 && int(index) >= w.globals:
			return fmt.Errorf("meter: export %q names global %d of %d", name, index, w.globals)
		}
	}
	w.exportSection(r.b[start:r.at], n)
	return r.done("export")
}

// done says whether a section was read to its end without an error.
func (r *reader) done(what string) error {
	if r.err == nil && r.at != len(r.b) {
		r.fail(fmt.Errorf("%d bytes are left over", len(r.b)-r.at))
	}
	if r.err != nil {
		return fmt.Errorf("meter: %s section: %w", what, r.err)
	}
	return nil
}
