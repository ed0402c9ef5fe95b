// Package packed writes values into few bytes and reads them again, both by one list of the fields: what is kept of
// thousands of requests, in the daemon's own memory and for itself alone. The access log has the rows of a decision as
// a table (AppendTable).
//
// Bytes hold no pointer: the collector does not look at them, and a record is written in one go behind the last one,
// where structs that are used again lie anywhere in memory.
//
// What lost: encoding/gob, which finds fields by reflection and describes its types in each stream; protobuf, whose
// messages are filled first and encoded then. Nobody else reads these bytes, so that they need neither tags nor a
// version.
package packed
