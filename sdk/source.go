//go:build !wasip1

package sdk

import "embed"

// Source is the SDK's own source with its licence. A project made by "warmpath plugin new" carries a copy, so that it
// builds on a machine that has nothing of warmpath but the binary. It is in no module. Tests but the examples are left
// out by the letter before .go, so that other files which end in t have their names here.
//
//go:embed *[^t].go example_*.go host.go request.go LICENSE
//go:embed abi/*[^t].go abi/layout.go abi/predict.go internal score/*[^t].go sdktest/*[^t].go sdktest/host.go
var Source embed.FS
