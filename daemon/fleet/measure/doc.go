// Package measure has what is learnt of a pool's workers while they work: how fast each is (speed.go, signs.go), how
// many requests they get (rates.go), how soon a place becomes free (places.go), and what load comes to them from
// other sources (elsewhere.go). Error answers do not count as samples.
//
// Its types know neither workers nor requests, and have no lock: package worker feeds and guards them. They read no
// clock. A time is a time.Duration since the pool began, and 0 means never. sdk/score calls the slowness m, the load
// rho and the rate lambda.
package measure
