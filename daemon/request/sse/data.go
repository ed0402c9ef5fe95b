package sse

import "bytes"

const dataField = "data:"

// Data finds the data of events in a stream that comes in pieces. The data may take several lines, and an event ends
// with an empty line. Its zero value is at the beginning of a line.
type Data struct {
	line int  // bytes of the line that were compared with "data:"; -1 = it is another line
	cr   bool // the last byte was the CR of a line's end
}

// Next returns how many bytes at the beginning of p, which is not empty, are data, or are none. ends: with the last of
// them an event ends.
func (d *Data) Next(p []byte) (n int, data, ends bool) {
	if d.line == len(dataField) {
		line := p
		for _, c := range []byte("\n\r") {
			if i := bytes.IndexByte(line, c); i >= 0 {
				line = line[:i]
			}
		}
		if len(line) > 0 {
			d.cr = false
			return len(line), true, false
		}
	}
	for i, c := range p {
		after := d.cr
		d.cr = c == '\r'
		switch {
		case c == '\n' && after:
		case c == '\n' || c == '\r':
			ends, d.line = d.line == 0, 0
			if ends {
				return i + 1, false, true
			}
		case d.line >= 0 && c == dataField[d.line]:
			d.line++
			if d.line == len(dataField) {
				return i + 1, false, false
			}
		default:
			d.line = -1
		}
	}
	return len(p), false, false
}
