// Package crew loads the strategies of each pool, and puts them to work: the one that serves, the canaries that serve a
// part of the requests, the shadows that look on. A reload loads all of them before it changes anything, since a module
// is what can fail.
package crew
