//go:build !wasip1

package sdk

import "embed"

// Source is the SDK's own source with its licence. A project made by "warmpath plugin new" carries a copy, so that it
// builds on a machine that has nothing of warmpath but the binary. It is in no module.
//
//go:embed *.go LICENSE abi internal score sdktest
var Source embed.FS
