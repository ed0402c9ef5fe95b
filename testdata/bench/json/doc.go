// Benchjson turns the output of go test -bench into one JSON line a figure, with its target:
//
//	go test -bench . ./... | testdata/run bench/json
//	{"name":"cache/prefix.Lookup/8k","value":412.5,"unit":"ns/op","target":600,"ok":true}
//
// The figures are those of targets.go, in its order; of repeated runs (-count) the median counts. A figure that the
// output lacks is a line with "missing":true, and the exit status is 1: a benchmark that was renamed must not vanish in
// silence. A missed target only sets "ok":false, since machines differ; compare figures of one machine.
//
// It is under testdata, as it is a tool of the Makefile and no part of the module's packages.
package main
