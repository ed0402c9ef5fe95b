// Package msgpack writes the messages that a simulated worker sends, and reads the few that it is sent.
//
// It is the other side of the router's own decoders on purpose: it shares no code with them, so a wrong byte in one of
// the two shows in the tests that play them against each other. What is written is what Python's msgspec writes, the
// smallest form of each value: TestVectors. A library of msgpack would do as well, and bring reflection, tags and a
// module for 150 lines.
package msgpack
