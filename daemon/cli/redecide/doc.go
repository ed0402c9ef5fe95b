// Package redecide runs a strategy on recorded decisions of a daemon, which its access log has.
//
// # What is in a record?
//
// With server.explain_log a line holds the frame: the header and the rows that the strategy saw, byte for byte, with
// the number that it took for chance. So the same module comes to the same choice, and another can be compared with it.
// The line has the caller's key too, the names of the labels, and the header fields that the strategy could see, each
// of at most 256 bytes. What is not recorded is the store, a header field that the recorded strategy could not see, and
// in a pool with roles the rows of prefillers if it did not ask for them (abi.WantPair). A request for which a strategy
// asks for one of these is counted apart and not judged: use a shadow, which sees them.
//
// The frame is there as packed_frame, in base64, as packed.AppendTable writes it: of the header, and of each row, a
// mask with a bit for each of its words of eight bytes, then the words whose bit is set. The others are zero, and a row
// after the first has its words combined with those of the row before by exclusive or. All is little-endian.
//
// # What does a difference mean?
//
// The report gives what the chosen worker was believed to hold of the prompt, and what the request costs there by the
// host's own score (sdk/score). Both are beliefs of that moment: the lab shows how the fleet would have gone on.
package redecide
