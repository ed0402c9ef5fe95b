// Package sse finds where events end in a stream of server-sent events: behind an empty line. Lines end with LF or
// CRLF, and each may end in its own way. A lone CR, which the standard allows too, is not taken for an end: no server
// of this field sends it.
//
// Data finds the data of events in a stream that is read piece by piece, and takes a lone CR for an end.
//
// Two others cut streams by lines, not by events. prompt joins the data of an event that comes in any pieces, and
// copies none that lies in one. lab/replay reads line by line from a buffer that bounds a line.
package sse

import "bytes"

// LastEnd returns the place after the last empty line, or 0. It goes back from line feed to line feed, and the first
// one is nearly always it. A search for either mark from behind costs a byte a step: vLLM sends no \n\r\n, so it
// would read each large piece from its end to its start, half of a fast stream's CPU.
func LastEnd(p []byte) int {
	for end := len(p); ; {
		i := bytes.LastIndexByte(p[:end], '\n')
		switch {
		case i < 1:
			return 0
		case p[i-1] == '\n', i > 1 && p[i-1] == '\r' && p[i-2] == '\n':
			return i + 1
		}
		end = i
	}
}

// FirstEnd returns the place after the first empty line whose preceding line feed is at from or later, or -1.
func FirstEnd(p []byte, from int) int {
	for i := from; ; i++ {
		n := bytes.IndexByte(p[i:], '\n')
		if n < 0 {
			return -1
		}
		i += n
		if i+1 < len(p) && p[i+1] == '\n' {
			return i + 2
		}
		if i+2 < len(p) && p[i+1] == '\r' && p[i+2] == '\n' {
			return i + 3
		}
	}
}
