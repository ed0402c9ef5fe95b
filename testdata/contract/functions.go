package main

import (
	"fmt"
	"go/ast"
	"regexp"
	"strings"

	"github.com/warmpath/warmpath/sdk/abi"
)

// function is one import or export.
type function struct {
	Name     string
	Params   []param
	Result   string // "" = none
	About    []string
	Optional bool
	Last     bool // the last of its list
}

type param struct{ Name, Type string }

// called finds "kv_get(kptr, klen, ptr, cap) -> needed     the module's own namespace" in the comment of a list.
var called = regexp.MustCompile(`^\t(\w+)\(([^)]*)\)(?: -> (\w+))? *(.*)$`)

// functions reads the names of parameters and the meaning of each function from the comment of its list.
func functions(doc *ast.CommentGroup, list []abi.Func) ([]function, error) {
	said := map[string][]string{} // by name: parameters, result, and lines of meaning
	name := ""
	for _, line := range lines(doc) {
		m := called.FindStringSubmatch(line)
		switch {
		case m != nil:
			name = m[1]
			said[name] = []string{m[2], m[3], m[4]}
		case name != "" && strings.HasPrefix(line, "\t"):
			said[name] = append(said[name], strings.TrimSpace(line))
		}
	}
	var all []function
	for _, f := range list {
		words, ok := said[f.Name]
		if !ok && len(f.Params)+len(f.Results) > 0 {
			return nil, fmt.Errorf("contract: the comment in sdk/abi/names.go does not describe %s", f.Name)
		}
		one := function{Name: f.Name, Optional: f.Optional}
		if ok {
			one.About = words[2:]
			if err := one.signature(f, words[0], words[1]); err != nil {
				return nil, err
			}
		}
		all = append(all, one)
	}
	all[len(all)-1].Last = true
	return all, nil
}

// signature gives the parameters names and types.
func (f *function) signature(from abi.Func, params, result string) error {
	names := strings.FieldsFunc(params, func(r rune) bool { return r == ',' || r == ' ' })
	if len(names) != len(from.Params) || (result != "") != (len(from.Results) > 0) {
		return fmt.Errorf("contract: the comment in names.go gives %s other parameters or results than it has", f.Name)
	}
	for i, t := range from.Params {
		writes := i+1 < len(names) && names[i+1] == "cap"
		f.Params = append(f.Params, param{names[i], typed(names[i], t, writes)})
	}
	if result != "" {
		f.Result = typed(result, from.Results[0], false)
	}
	return nil
}

// typed is the type of a parameter or result of that name. writes means that the host writes to the address.
func typed(name string, t abi.Type, writes bool) string {
	switch {
	case strings.HasSuffix(name, "ptr") && writes:
		return "out"
	case strings.HasSuffix(name, "ptr"), name == "address":
		return "in"
	case t == abi.F64:
		return "f64"
	case t == abi.I64 && (name == "key" || name == "hash" || name == "value_bits"):
		return "u64"
	case t == abi.I64:
		return "i64"
	case strings.HasSuffix(name, "len") || name == "cap" || name == "n":
		return "u32"
	}
	return "i32"
}
