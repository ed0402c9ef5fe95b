// Package jsonline appends JSON field by field: the line of the access log and the candidates in it, and in spans.
//
// Package encoding/json finds a struct's fields by reflection, and slog's handler wraps each in a value: a line of the
// access log with the candidates of four workers took a quarter of a request's CPU in them. What is rare is left to
// encoding/json: texts that are not plain ASCII. TestLine compares every kind of value with it.
//
// The alternative was a library that generates code for structs. It does not fit: a line leaves out the fields that are
// not known, so it is not a struct, and a generated file would replace forty lines of ours.
package jsonline
