// Package host is the sandbox: strategies as WebAssembly modules on wazero, which is imported here and nowhere else.
//
// [Host] owns the engine. [Host.Load] makes a [Strategy] of a module's bytes: meter, compile, verify names and
// signatures, start one instance, configure it, try it. [Strategy.Pick] borrows an instance, writes the [Frame] into
// its memory, calls wp_pick and reads the answer; it never fails, since on any error [Fallback] answers in the same
// request. [Current] swaps a strategy for another while picks run. [Strategy.Filter] calls wp_filter in the same way; a
// strategy has the filters before it ([Strategy.Behind]), so that both are swapped at once.
//
// # What bounds a module?
//
//   - Fuel bounds steps, a clock bounds time. A module holds a slice of its fuel and calls the host when it is used up.
//     The host looks at the clock, and hands out the next slice or ends the call (budget.go). A pick ends 5 ms after it
//     began (TestTimeOfAPick), unless one step takes long.
//   - A refill also looks at the size of the stack, which wazero does not limit (depth.go, TestStackIsBounded).
//   - A strategy is set aside if the clock ends five picks in a row, or if more than one pick of twenty is slow: ended,
//     or over 1 ms (TestLongPicksSetAStrategyAside). One pick tries it again after half a minute, and after twice as
//     long for each failure, five minutes at most.
//   - A function that would compile for over 10 s is refused before (package meter). Compiling holds no lock, and is
//     given up after 10 s of processor time (TestGoodGuestOnABusyMachine); such a module is refused at once from then
//     on (TestCompilationIsGivenUp).
//   - The whole memory of an instance is reserved at its start, and touched as the module needs it.
//
// # What may a module touch?
//
// The functions in imports.go and prefixes.go, and the stubs of wasi.go. A limit on its memory is put into its own
// memory section by the meter, so that strategies with different limits share one engine.
//
// # Instances
//
// A module is compiled once (code.go), and strategies with the same module, options and permissions share its
// instances, whichever pools they serve (instances.go). An instance works for the strategy that has taken it. Its
// memory is outside of Go's heap.
//
// There are two instances at first, in an array of slots, and at most as many as processors. A pick that finds all of
// them taken yields up to 64 times. Then it waits for one more to be made, or takes the fallback ("busy") if there are
// all. Any error discards the instance. One goroutine a strategy, the keeper, makes new ones and rests four times as
// long as each took. Every 256 picks of an instance it also runs wp_maint there, one instance at a time, since Go
// guests collect garbage only while an export runs.
//
// why.md has the reasons for these, what was measured, and what lost.
package host
