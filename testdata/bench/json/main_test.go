package main

import (
	"strings"
	"testing"
)

const output = `goos: linux
pkg: github.com/warmpath/warmpath/cache/prefix
BenchmarkLookup/8k-2         	 1000000	       700.0 ns/op
BenchmarkLookup/8k-2         	 1000000	       500.5 ns/op	       0 B/op	       0 allocs/op
BenchmarkLookup/8k-2         	 1000000	       300.0 ns/op
BenchmarkBoth                	      10	    5 ns/op	  1e+06 lookups/s
PASS
ok  	github.com/warmpath/warmpath/cache/prefix	3.0s
pkg: github.com/warmpath/warmpath/plugins
BenchmarkNative/a/workers=16-2  	 100	  100 ns/op
`

func TestRun(t *testing.T) {
	f := func(wanted target, want string, complete bool) {
		t.Helper()
		var b strings.Builder
		got, err := run(strings.NewReader(output), &b, []target{wanted})
		if err != nil || got != complete || b.String() != want+"\n" {
			t.Errorf("got %v, %v, %s want %v, %s", got, err, b.String(), complete, want)
		}
	}
	f(most("cache/prefix.Lookup/8k", "ns/op", 600), `{"name":"cache/prefix.Lookup/8k","value":500.5,"unit":"ns/op","target":600,"ok":true}`, true)
	f(most("cache/prefix.Lookup/8k", "ns/op", 500), `{"name":"cache/prefix.Lookup/8k","value":500.5,"unit":"ns/op","target":500,"ok":false}`, true)
	f(most("cache/prefix.Lookup/8k", "allocs/op", 0), `{"name":"cache/prefix.Lookup/8k","value":0,"unit":"allocs/op","target":0,"ok":true}`, true)
	f(least("cache/prefix.Both", "lookups/s", 2e6), `{"name":"cache/prefix.Both","value":1000000,"unit":"lookups/s","target":2000000,"ok":false}`, true)
	f(plain("plugins.Native/a/workers=16", "ns/op"), `{"name":"plugins.Native/a/workers=16","value":100,"unit":"ns/op","ok":true}`, true)
	f(ratio("cache/prefix.Lookup/8k", "plugins.Native/a/workers=16", 5), `{"name":"cache/prefix.Lookup/8k over plugins.Native/a/workers=16","value":5.005,"unit":"ratio","target":5,"ok":false}`, true)
	f(most("host.Gone", "ns/op", 1), `{"name":"host.Gone","value":null,"unit":"ns/op","target":1,"ok":false,"missing":true}`, false)
}

func TestRunTellsOfFailure(t *testing.T) {
	if _, err := run(strings.NewReader(output+"--- FAIL: BenchmarkX\n"), new(strings.Builder), nil); err == nil {
		t.Error("a failed benchmark passed")
	}
}
