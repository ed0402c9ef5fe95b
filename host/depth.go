package host

import (
	"errors"
	"reflect"

	"github.com/tetratelabs/wazero/api"
)

// stackShare is the share of a module's memory limit that its stack may take of the process: 1 MiB of 16. wazero
// doubles a stack that is full, up to 80 MB, and copies it in one step, which no clock can end.
const stackShare = 16

var errNoStack = errors.New("out of stack")

// stack is the stack of one exported function, on which all that it calls runs too. It belongs to wazero and not to the
// module's memory. wazero neither bounds it nor reports its size. So we look at the field that holds it, by name;
// TestSizeOfAStack fails on a wazero that has no such field. The zero value and nil stand for a stack that we cannot
// see.
type stack struct{ field reflect.Value }

func stackOf(f api.Function) *stack {
	v := reflect.ValueOf(f)
	if v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct {
		return &stack{}
	}
	field := v.Elem().FieldByName("stack")
	if field.Kind() != reflect.Slice {
		return &stack{}
	}
	return &stack{field: field}
}

// size returns the bytes that it takes now; 0 = not known. It never shrinks.
func (s *stack) size() int {
	if s == nil || !s.field.IsValid() {
		return 0
	}
	return s.field.Len()
}
