// Package readiness has a pool as an operator sees it, and decides whether it can serve, and why not.
//
// A [Pool] is put together by the daemon at each start and reload. [Pool.WhyNot] and [Pool.Verdict] read the workers'
// counts at that moment; they keep nothing.
package readiness
