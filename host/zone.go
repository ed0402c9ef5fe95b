package host

import (
	"time"
	_ "time/tzdata" // a container without zoneinfo has time zones too

	"github.com/tetratelabs/wazero/api"
	"github.com/warmpath/warmpath/sdk/abi"
)

// zoneFuel is the price of a time zone that the instance has not asked for last: its data is read and decoded.
const zoneFuel = 30_000

// maxZone bounds the name of a time zone, in bytes.
const maxZone = 64

// location returns the time zone of a name as the time zone database has it, nil if there is none.
func location(name string) *time.Location {
	l, _ := time.LoadLocation(name) // an error gives nil
	return l
}

func importZoneOffset(in *instance, mem api.Memory, st []uint64) {
	ptr, n, now := uint32(st[0]), uint32(st[1]), int64(st[2])
	b, ok := mem.Read(ptr, min(n, maxZone))
	if !ok || n == 0 || n > maxZone {
		st[0] = errno(abi.NoZone)
		return
	}
	if string(b) != in.zoneName {
		in.pay(zoneFuel)
		in.zoneName, in.zone = string(b), location(string(b))
	}
	if in.zone == nil {
		st[0] = errno(abi.NoZone)
		return
	}
	_, east := time.Unix(0, now).In(in.zone).Zone()
	st[0] = errno(int32(east))
}
