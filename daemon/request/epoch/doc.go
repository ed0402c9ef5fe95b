// Package epoch has what is in force when a request arrives: the configuration, the pools with their settings, and what
// is kept of each worker from request to request. A reload makes a new [Epoch]; a request uses the one with which it
// came to its end.
//
// [Clients] has the connections to the workers, and for each worker a [Habit]: where the ids of its answers have the
// id of the request. [Asking] sends the router's own questions to the workers. Both outlive epochs.
package epoch
