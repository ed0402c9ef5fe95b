// Package sdk is what the author of a routing strategy imports.
//
// A strategy is one method, registered in init, as main does not run in the kind of module that the host loads:
//
//	package main
//
//	import "github.com/warmpath/warmpath/sdk"
//
//	type least struct{}
//
//	func (least) Route(r *sdk.Request, workers []sdk.Worker) sdk.Decision {
//		best := 0
//		for i := range workers {
//			if workers[i].InFlight < workers[best].InFlight {
//				best = i
//			}
//		}
//		return sdk.To(best).Because(sdk.ReasonLeast)
//	}
//
//	func init() { sdk.Register(least{}) }
//
//	func main() {}
//
// The standard toolchain builds it:
//
//	GOOS=wasip1 GOARCH=wasm go build -buildmode=c-shared -trimpath -ldflags='-s -w -buildid=' -o least.wasm .
//
// Package sdktest runs the same code natively under plain go test.
//
// # What a strategy may rely on
//
// Every worker in the slice is up and lists the request's model; there is at least one. A session that is bound to a
// worker which is up goes there without asking the strategy: the host honours the binding. Workers and header are views
// of memory that the host overwrites before the next pick, so keep no pointer into them.
//
// Several instances of a module run at once and any of them may be dropped at any time, so a variable of the package is
// a cache that may vanish, never a count of anything. Pools with the same module, options and permissions share
// instances: what such a cache holds must be right for all of them. A number for each worker that all instances read is
// [Worker].Own, set by [SetOwn]. What else they must agree on lives in [KVAdd], [KVSwap] and [KVGet], or comes from the
// host: [Request] has the request's exact number in Seq and fresh randomness in Random, which [Request.Pick] and
// [Request.Chance] use.
//
// # What else it may implement
//
//	Configurer     its options                               Wanter         the host's own score of each worker
//	Reasoner       names of its reasons                      Ticker         a call each second
//	FirstTokener   when answers begin                        Completer      how requests end
//	KVEventer      what workers report of their caches     Classifier     how urgent what is to wait is
//	Filterer       which workers a request may use
//
// Ticker, FirstTokener, Completer and KVEventer are called between picks, on any idle instance: once for each outcome,
// late by milliseconds, and not at all where outcomes come faster than the strategy takes them. What one instance
// learns reaches the others by [SetOwn], or by the store. A strategy answers with [To], [Decline], [Reject],
// [Request.Reject], [Request.Hold] or [Request.Pair]; the examples of this package are complete strategies, and run as
// its tests.
//
// What a strategy prints in Route, by println or to standard output, goes to the daemon's log at level debug, with the
// pool and the request's id; so does [Log] at any level. Lines are rate-limited: one a second, ten at once.
//
// why.md has the reasons and the details, and what lost.
package sdk
