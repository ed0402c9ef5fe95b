// Package gate decides what can be decided about a request before anything is spent on it: whose key it shows, whether
// a web page may ask, under which id it travels, and which fields describe its way to the worker. It knows no HTTP
// library: the process hands in header values and gets header values back, so that every rule is tested as a plain
// function.
//
// why.md has the reasons and the details, and what lost.
package gate
