// Package bugs keeps one small case for each report of a fault in a router, an engine or what is around them, so that
// the fault, and others of its kind, cannot come in unseen:
//
//	go test -C testdata ./trials/bugs                      # builds the daemon first; BIN=bin/warmpath names another
//	go test -C testdata ./trials/bugs -run 'Wall/poison'   # some cases, by the start of their names
//	go test -C testdata ./trials/bugs -record after        # writes what was measured into that column of findings.md
//
// findings.md is the table: report, kind, test, figure before and after. A test holds it against the cases, so that
// none is without its row. A case's name says what is wanted.
//
// Each case starts the real binary with default settings in front of workers of this process, over sockets. Where a
// report needs minutes, the case shortens a timeout of the configuration and says which. Beside the cases that a report
// names stand neighbours: the same kind of fault with another status, endpoint or shape. Some cases are controls: they
// hold what must not be lost while a fault is mended, such as that an engine's shutdown is seen.
//
// All cases run at once, since they wait for most of their time: the wall takes as long as its slowest case.
package bugs
