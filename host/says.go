package host

import (
	"fmt"
	"strconv"

	"github.com/warmpath/warmpath/sdk/abi"
)

// What the host asks a module once, after it is configured: what it wants, and what its reasons are called.

// readWants asks wp_wants. A module of version 1.0 is not asked. A module that is not asked, or does not export
// wp_wants, gets every call that it exports.
func readWants(in *instance) (uint32, error) {
	minor, exported := int(in.program.layout.Version&0xffff), uint32(0)
	for _, e := range abi.Exports {
		if e.Minor <= minor && in.mod.ExportedFunction(e.Name) != nil {
			exported |= e.Want
		}
	}
	f := in.mod.ExportedFunction("wp_wants")
	if f == nil || minor < 1 {
		return exported, nil
	}
	if err := in.call(f, configureTime, "wp_wants"); err != nil {
		return 0, err
	}
	wants := uint32(in.stack[0])
	known := abi.WantAll
	if minor < 2 {
		known &^= abi.WantPair | abi.WantCandidates // for which its header has no room
	}
	if strange := wants &^ known; strange != 0 {
		return 0, fmt.Errorf("host: module %q: wp_wants asks for %#x, which ABI %d.%d does not have; "+
			"leave these bits out, or build it for the version that has them",
			in.program.name, strange, abi.Version>>16, minor)
	}
	for _, e := range abi.Exports {
		if e.Want&wants&^exported != 0 {
			return 0, fmt.Errorf("host: module %q: wp_wants asks for %#x, but func[%s] is not exported; "+
				"export it, or leave the bit out", in.program.name, e.Want, e.Name)
		}
	}
	return wants, nil
}

// readReasons asks wp_reasons for the names of the module's reason codes.
func readReasons(in *instance) (map[uint16]string, error) {
	names := map[uint16]string{}
	f := in.mod.ExportedFunction("wp_reasons")
	if f == nil || in.program.layout.Version&0xffff < 1 {
		return names, nil
	}
	if err := in.call(f, configureTime, "wp_reasons"); err != nil {
		return nil, err
	}
	n := uint32(in.stack[0])
	b, ok := in.mem.Read(in.base, n)
	if !ok || n > abi.MaxOptions {
		return nil, fmt.Errorf("host: module %q: wp_reasons gives %d bytes; want at most %d at the frame's address",
			in.program.name, n, abi.MaxOptions)
	}
	for len(b) > 0 {
		key, name, rest, ok := abi.NextOption(b)
		code, err := strconv.ParseUint(key, 10, 16)
		if !ok || err != nil || len(names) == abi.MaxReasons {
			return nil, fmt.Errorf("host: module %q: wp_reasons names the code %q after %d others; want at most %d, "+
				"each a number from 0 to 65535 and a name, as abi.AppendOption writes them",
				in.program.name, key, len(names), abi.MaxReasons)
		}
		names[uint16(code)] = oneLine(name)
		b = rest
	}
	return names, nil
}
