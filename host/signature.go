package host

import (
	"strings"

	"github.com/tetratelabs/wazero/api"
	"github.com/warmpath/warmpath/sdk/abi"
)

// signature writes a signature as errors name it.
func signature(params, results []api.ValueType) string {
	names := func(ts []api.ValueType) string {
		var s []string
		for _, t := range ts {
			s = append(s, api.ValueTypeName(t))
		}
		return "(" + strings.Join(s, ", ") + ")"
	}
	return names(params) + " -> " + names(results)
}

func signatureOf(f abi.Func) string { return signature(valueTypes(f.Params), valueTypes(f.Results)) }

// valueTypes: abi's codes are the binary format's, and so are wazero's.
func valueTypes(ts []abi.Type) []api.ValueType {
	v := make([]api.ValueType, len(ts))
	for i, t := range ts {
		v[i] = api.ValueType(t)
	}
	return v
}
