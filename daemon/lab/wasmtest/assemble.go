package wasmtest

import (
	"fmt"
	"os"
	"strings"
)

type signature struct{ params, results string } // value types as bytes

type function struct {
	sig    signature
	names  map[string]int // locals by $name
	locals []byte
	body   []node
}

type export struct {
	name  string
	kind  byte
	index string
}

// module collects the fields of one module before they are written in the order of the binary format.
type module struct {
	types   []signature
	funcs   map[string]int // $name -> index
	globals map[string]int
	imports []byte
	nimport int
	bodies  []function
	sigs    []int
	memory  []byte
	table   []byte
	global  []byte
	nglobal int
	exports []export
	start   string
	elems   []node
	datas   []byte
	ndata   int
}

// File assembles the module in a text file.
func File(path string) ([]byte, error) {
	src, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("wasmtest: %w", err)
	}
	return Assemble(string(src))
}

// Assemble makes the binary module of one (module ...) of text.
func Assemble(src string) ([]byte, error) {
	n, i, err := parse(src, 0)
	if err != nil {
		return nil, err
	}
	if n.head() != "module" || skip(src, i) != len(src) {
		return nil, fmt.Errorf("wasmtest: want one (module ...), got %q", n.head())
	}
	m := &module{funcs: map[string]int{}, globals: map[string]int{}}
	for _, field := range n.list[1:] {
		if err := m.field(field); err != nil {
			return nil, err
		}
	}
	return m.encode()
}

func (m *module) field(n node) error {
	switch n.head() {
	case "import":
		return m.importField(n)
	case "func":
		return m.funcField(n)
	case "memory":
		l := m.inlineExports(n.list[1:], 2, 0)
		return limits(&m.memory, l)
	case "table":
		l := m.inlineExports(n.list[1:], 1, 0)
		m.table = append(m.table, 0x70)
		return limits(&m.table, l[:len(l)-1])
	case "global":
		return m.globalField(n)
	case "export":
		kind := map[string]byte{"func": 0, "table": 1, "memory": 2, "global": 3}[n.list[2].head()]
		m.exports = append(m.exports, export{string(text(n.list[1].atom)), kind, n.list[2].list[1].atom})
	case "start":
		m.start = n.list[1].atom
	case "elem":
		m.elems = append(m.elems, n)
	case "data":
		m.ndata++
		l := n.list[1:]
		if l[0].isL { // active: (i32.const n)
			at, err := number(l[0].list[1].atom)
			if err != nil {
				return err
			}
			m.datas = append(sleb(append(m.datas, 0, 0x41), at), 0x0b)
			l = l[1:]
		} else {
			m.datas = append(m.datas, 1)
		}
		m.datas = bytes(m.datas, text(l[0].atom))
	default:
		return fmt.Errorf("wasmtest: module field %q is not known", n.head())
	}
	return nil
}

// inlineExports takes (export "x") from the front of l.
func (m *module) inlineExports(l []node, kind byte, index int) []node {
	for len(l) > 0 && (l[0].head() == "export" || strings.HasPrefix(l[0].atom, "$")) {
		if l[0].isL {
			m.exports = append(m.exports, export{string(text(l[0].list[1].atom)), kind, fmt.Sprint(index)})
		}
		l = l[1:]
	}
	return l
}

func limits(b *[]byte, l []node) error {
	*b = append(*b, byte(len(l)-1))
	for _, n := range l {
		v, err := number(n.atom)
		if err != nil {
			return err
		}
		*b = uleb(*b, uint64(v))
	}
	return nil
}

func (m *module) importField(n node) error {
	f := n.list[3]
	m.imports = append(bytes(bytes(m.imports, text(n.list[1].atom)), text(n.list[2].atom)), 0)
	l := f.list[1:]
	if len(l) > 0 && strings.HasPrefix(l[0].atom, "$") {
		m.funcs[l[0].atom] = m.nimport
		l = l[1:]
	}
	fn, rest, err := header(l)
	if err != nil || len(rest) > 0 {
		return fmt.Errorf("wasmtest: import %s: %v", n.list[2].atom, err)
	}
	m.imports = uleb(m.imports, uint64(m.typeOf(fn.sig)))
	m.nimport++
	return nil
}

func (m *module) funcField(n node) error {
	l, index := n.list[1:], m.nimport+len(m.bodies)
	if len(l) > 0 && strings.HasPrefix(l[0].atom, "$") {
		m.funcs[l[0].atom] = index
		l = l[1:]
	}
	fn, rest, err := header(m.inlineExports(l, 0, index))
	if err != nil {
		return err
	}
	fn.body = rest
	m.bodies = append(m.bodies, fn)
	m.sigs = append(m.sigs, m.typeOf(fn.sig))
	return nil
}

func (m *module) globalField(n node) error {
	l := n.list[1:]
	if strings.HasPrefix(l[0].atom, "$") {
		m.globals[l[0].atom] = m.nglobal
		l = l[1:]
	}
	l = m.inlineExports(l, 3, m.nglobal)
	typ, mut := l[0].atom, byte(0)
	if l[0].isL {
		typ, mut = l[0].list[1].atom, 1
	}
	init, err := m.instructions(function{}, l[1].list)
	if err != nil {
		return err
	}
	m.global = append(append(append(m.global, valueTypes[typ], mut), init...), 0x0b)
	m.nglobal++
	return nil
}

// header takes (param ...), (result ...) and (local ...) from the front of a function.
func header(l []node) (function, []node, error) {
	f := function{names: map[string]int{}}
	for ; len(l) > 0 && l[0].isL; l = l[1:] {
		kind := l[0].head()
		for _, n := range l[0].list[1:] {
			if strings.HasPrefix(n.atom, "$") {
				f.names[n.atom] = len(f.sig.params) + len(f.locals)
				continue
			}
			t, ok := valueTypes[n.atom]
			switch {
			case !ok:
				return f, nil, fmt.Errorf("wasmtest: value type %q is not known", n.atom)
			case kind == "param":
				f.sig.params += string([]byte{t})
			case kind == "result":
				f.sig.results += string([]byte{t})
			case kind == "local":
				f.locals = append(f.locals, t)
			default:
				return f, nil, fmt.Errorf("wasmtest: %q does not open a function", kind)
			}
		}
	}
	return f, l, nil
}

func (m *module) typeOf(s signature) int {
	for i, t := range m.types {
		if t == s {
			return i
		}
	}
	m.types = append(m.types, s)
	return len(m.types) - 1
}
