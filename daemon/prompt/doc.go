// Package prompt reads request and reply bodies.
package prompt
