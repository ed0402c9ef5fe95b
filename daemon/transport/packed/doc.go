// Package packed writes a table of rows that are much alike into few bytes, and reads it again. The access log has the
// rows of a decision so, in the field packed_frame.
//
// Each row, and the head before them, is a mask with a bit for each of its words of eight bytes, then the words whose
// bit is set. The others are zero, and a row after the first has its words combined with those of the row before by
// exclusive or. All is in this machine's order: little-endian, where warmpath runs.
package packed
