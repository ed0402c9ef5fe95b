// Package session keeps which session is bound to which worker.
package session
