// Package adapt turns the configuration into what the packages under daemon take: one function for each, from conf's
// words to the package's own. So the root, which wires, stays short enough to read. adapt keeps no state and starts
// nothing.
package adapt
