// Package names knows the names that clients use for other models. It chooses the model for a session, and writes
// names in JSON in place of others: in requests on their way to a worker, and in answers on their way back.
//
// It does no I/O of its own and reads no clock.
package names
