// Package jsonline appends JSON field by field: the line of the access log and the candidates in it, and in spans.
//
// Package encoding/json finds a struct's fields by reflection, and slog's handler wraps each in a value: a line of the
// access log with the candidates of four workers took a quarter of a request's CPU in them. What is rare is left to
// encoding/json: texts that are not plain ASCII. TestLine compares every kind of value with it.
//
// What lost: a library that generates code for structs. The lines are no structs, as fields are left out of them by
// what is known, and a generated file would replace forty lines of ours.
package jsonline
