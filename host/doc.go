// Package host is the sandbox: strategies as WebAssembly modules on wazero, which is imported here and nowhere else.
//
// [Host] owns the engine. [Host.Load] makes a [Strategy] of a module's bytes: meter, compile, verify names and
// signatures, start one instance, configure it, try it. [Strategy.Pick] borrows an instance, writes the [Frame] into
// its memory, calls wp_pick and reads the answer; it never fails, since on any error [Fallback] answers in the same
// request. [Current] swaps a strategy for another while picks run.
//
// # What bounds a module's time?
//
// Fuel, and a clock. wazero's WithCloseOnContextDone costs 0.8-1.0 us and 3 allocations a call and 50 ns a loop turn
// (scoring 16 workers went from 236 to 2,777 ns), and does not stop recursion. Fuel alone bounds steps: a million of
// them took 0.6 ms in an empty loop and 700 ms in multiplications of denormals. So the module holds a slice of its
// fuel, and calls the host when that is used up; the host looks at the clock and hands out the next slice, or ends the
// call (budget.go). A pick ends 5 ms after it began (TestTimeOfAPick), unless one step takes long: touching all of
// a memory for the first time takes 3 ms more. In each refill Go's stop-the-world finds the guest at a stop, so that
// others wait for a slice and not for a pick.
//
// wazero doubles a stack that is full, up to 80 MB, and copies it in one step: a recursion took 10 ms, and 68 ms with
// frames of values that it never computes. It has no limit to set. So a refill looks at the size of the stack, in the
// field that holds it (depth.go), and the meter has a function's bytes pay at entry, so that a stack cannot grow far
// within a slice (TestStackIsBounded). A counter of depth in the module lost: it costs each call, and has to guess the
// frame.
//
// A pick that is done within 1,250 fuel never looks at the clock; an instance that is trusted has 5,000. A refill costs
// some 0.15 us, the checks 1 to 3 % of a pick (meter/scan.go has what they cost elsewhere). Larger slices would save
// refills and lost: a module that was well for 1,000 picks could then take more than its 5 ms.
//
// A strategy whose picks are ended five times in a row, or that is slow in more than one pick of twenty, is set aside.
// Slow is what the clock ends, and also what takes over a fifth of its time, 1 ms, and answers
// (TestLongPicksSetAStrategyAside): nothing would ever end picks of 4.9 ms, though four clients can keep two processors
// busy with them, and other pools wait. A share of the processors for each strategy lost: it takes a second clock and a
// queue, and a pick that waits for its share is no better off than one that the fallback answers. One pick tries it
// again after half a minute, and after twice as long for each try in vain, five minutes at most.
//
// What would compile for over 10 s is refused before (package meter). Compiling holds no lock, and is given up after 10
// s of a processor: by the clock a busy machine would refuse good modules (TestGoodGuestOnABusyMachine). wazero cannot
// be stopped in the middle of a function, so what is given up goes on behind until it is done.
//
// # What does a call into the store cost?
//
// Memory: it never waits for Redis. Config.KV answers from memory, and the daemon's (tier.Local) sends changes to Redis
// later. The fuel of a call follows its kind and its bytes.
//
// # Why are instances kept, and why in an array of slots?
//
// A standard Go guest compiles in 0.3-0.7 s, starts in 4-7 ms and answers in 0.2 us: compile once, keep instances. One
// instance behind a mutex does not scale; a channel costs 40-50 ns; sync.Pool drops instances at a collection, and each
// takes 6 ms to make. A fixed array with compare-and-swap scales 1.95 times on 2 cores.
//
// # What if all slots are taken?
//
// Slots are as many as processors, so a taken one belongs to a goroutine that was preempted, or to the keeper. A pick
// yields up to 64 times and then takes the fallback ("busy"). With 16 goroutines on 2 loaded cores that was 1 pick in
// 900. A temporary instance lost: it would take 6 ms and 3 MiB to save a microsecond.
//
// # Why is an instance discarded on any error?
//
// A trapped instance looks alive: IsClosed is false, later calls answer, and then the guest's runtime corrupts. A bad
// index is no trap, but a guest that computes one is not believed again either. Refills are made by one goroutine a
// strategy, the keeper, which rests four times as long as each took: a module that traps on every second request costs
// at most a fifth of a core. Several errors in a row set the strategy aside; after a pause one pick tries it again.
//
// # Who runs wp_maint?
//
// The keeper, every 256 picks of an instance, one instance at a time, while the others serve. Go guests collect garbage
// only while an export runs: 200,000 picks at 1 KiB each leave an instance at 7 MiB, and without wp_maint it dies.
//
// # Why is the whole memory reserved at start?
//
// It is reserved, not touched. Growing in place costs 0.1 ms where a module that grows page by page to 16 MiB took 55
// ms of copying and faulting, which fuel cannot price without pricing out a Go guest's honest growth.
//
// # How does a module of an older version run?
//
// The marker that it exports names its layout (abi.Layouts), and [Frame] writes that one: rows of our own version in
// one copy, those of an older one row by row, as they are the beginning of ours. To let the guest skip what it does not
// know lost: modules in C have the strides as constants. TestModuleOfABI10 holds a module of 1.0.
//
// # What does a module learn beside its picks?
//
// What it wants, by wp_wants or by what it exports: [Notices] wait in bounded queues for the keeper, which keeps one
// instance for a millisecond at a time and then rests as long. Each call has a pick's fuel and time and fails as a pick
// does. After several failures in a row the module gets no notices for a while, though it goes on answering
// (TestNoticeThatFails).
//
// # What may a module touch?
//
// What stands in imports.go and prefixes.go, and the stubs of wasi.go. A limit on its memory is put into its own memory
// section by the meter, so that strategies with different limits share one engine.
package host
