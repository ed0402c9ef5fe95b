// Package engine computes what one vLLM worker would do with the prompts that it is given, and how long that would
// take: a paged KV cache with prefix caching, vLLM's scheduler, and a model of time. It knows no HTTP and no clock.
//
// # Rules
//
//   - Time is passed in. Every instant is a time.Duration since the engine's start, in simulated time. The package
//     reads no clock, never sleeps, and starts no goroutine. Package vllmsim drives an engine by the wall clock. A
//     backtest drives many of them in virtual time, thousands of simulated seconds in one: TestVirtualTime.
//   - An Engine has no lock. A caller that shares one between goroutines locks around every call and around reads of a
//     Sequence after Submit.
//   - Submit, Advance, Cancel, ResetCache, Pause, Resume and SetWeights are the only calls that change anything.
//     Advance and Cancel return what happened, as events in the order of their times.
//   - A step's end is computed, not waited for. How far Advance strides changes no step, no time and no token, only the
//     moment at which tokens are shown: TestStridesChangeNothing. The same calls give the same events: TestSameSeeds.
//   - Nothing is random. A reply is a function of prompt, salt and seed.
//
// # Use
//
//	e, err := engine.New(engine.Config{})
//	q := engine.NewSequence(engine.AppendTokens(nil, text), salt, seed, engine.BlockTokens)
//	q.MaxTokens = 100
//	err = e.Submit(now, &q)
//	for at, ok := e.NextEvent(); ok; at, ok = e.NextEvent() {
//		for _, event := range e.Advance(at) { ... }
//	}
//
// # What follows vLLM
//
// scheduler.go follows vLLM's scheduler: a budget of tokens a step, running sequences first and in order, chunked
// prefill, admission while blocks last, preemption of the last. blocks.go follows its BlockPool. model.go computes how
// long a step takes; the constants of the prefill are those of sdk/abi, from which the router starts too.
//
// change.go reports what the caches hold, a batch for each step, as KV events do: TestRecordedRequests plays the
// requests of a recorded vLLM 0.32.0, and compares every store, removal, parent and their order. TestInvariants
// compares a view that follows the changes with the caches, after random calls.
//
// why.md has the reasons and the details, and what lost.
package engine
