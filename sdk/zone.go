package sdk

import (
	"errors"
	"strconv"

	"github.com/warmpath/warmpath/sdk/abi"
	"github.com/warmpath/warmpath/sdk/internal/imports"
)

// Zone is a time zone: see [Options.Zone]. The zero value is UTC.
type Zone struct {
	name    string // "" = the offset is fixed
	quarter int64  // of an hour, for which east was asked; a zone changes only between two
	east    int64  // seconds
}

// Clock is a local time of day.
type Clock struct{ Weekday, Hour, Minute int } // Weekday 0 is Sunday

// Zone returns the option as a time zone: a name of the time zone database, as Europe/Berlin, with its daylight saving;
// an offset from UTC, as +05:30; or Local, that of the router's machine. The host knows the names, so that the module
// needs no package time, which is 250 KB of wasm.
func (o *Options) Zone(key, absent string) *Zone {
	text := o.String(key, absent)
	z := &Zone{quarter: -1}
	if east, ok := offset(text); ok {
		z.east = east
		return z
	}
	z.name = text
	if text == "" || imports.ZoneOffset(text, 0) == abi.NoZone {
		o.refuse(key, text, "a time zone, as Europe/Berlin or +05:30")
		return new(Zone)
	}
	return z
}

// offset reads +05:30, in seconds.
func offset(s string) (seconds int64, ok bool) {
	if len(s) != len("+05:30") || s[3] != ':' || s[0] != '+' && s[0] != '-' {
		return 0, false
	}
	h, err1 := strconv.ParseUint(s[1:3], 10, 8)
	m, err2 := strconv.ParseUint(s[4:], 10, 8)
	if errors.Join(err1, err2) != nil || h > 14 || m > 59 {
		return 0, false
	}
	seconds = int64(h*3600 + m*60)
	if s[0] == '-' {
		seconds = -seconds
	}
	return seconds, true
}

// At returns the time of day at a time in Unix nanoseconds, as [Request].Now.
func (z *Zone) At(now int64) Clock {
	const quarter, day, week = 900, 24 * 3600, 7 * 24 * 3600
	at := now / 1e9
	if q := at / quarter; z.name != "" && q != z.quarter {
		z.quarter, z.east = q, int64(imports.ZoneOffset(z.name, now))
	}
	s := (at + z.east + 4*day) % week // 1970 began on a Thursday
	return Clock{Weekday: int(s / day), Hour: int(s % day / 3600), Minute: int(s % 3600 / 60)}
}
