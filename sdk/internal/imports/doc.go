// Package imports holds the functions that the host gives to a module, each in one line.
//
// In a module they are the imports themselves. Natively they go to a Host that a test sets, and without one they answer
// as a host does that knows nothing. It is a package of its own so that sdk and sdktest share the seam while no
// strategy sees it.
package imports
