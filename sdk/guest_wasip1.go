package sdk

import "runtime"

// The exports of the contract; abi.Exports lists what each must do. A test compares the two.

// shared is the one frame of an instance.
var shared frame

//go:wasmexport warmpath_abi_1_3
func marker() {}

//go:wasmexport wp_frame
func wpFrame(maxWorkers uint32) uint32 {
	return uint32(uintptr(shared.grow(int(maxWorkers))))
}

//go:wasmexport wp_pick
func wpPick() uint64 { return uint64(shared.pick(registered)) }

//go:wasmexport wp_configure
func wpConfigure(n uint32) int32 { return shared.configure(registered, n) }

// A collection that has become due is run by goroutines of the runtime, and they run only while an export does.
// Yielding lets them. Forcing a collection here instead would charge its time to every strategy, also to one that does
// not allocate.
//
//go:wasmexport wp_maint
func wpMaint() { runtime.Gosched() }

//go:wasmexport wp_wants
func wpWants() uint32 { return WantsOf(registered) }

//go:wasmexport wp_reasons
func wpReasons() uint32 { return shared.reasons(registered) }

//go:wasmexport wp_classify
func wpClassify() uint64 { return shared.classify(registered) }

//go:wasmexport wp_filter
func wpFilter() uint64 { return uint64(shared.filter(registered)) }

//go:wasmexport wp_tick
func wpTick(now int64) { tick(registered, now) }

//go:wasmexport wp_on_first_token
func wpOnFirstToken(n uint32) { firstTokens(registered, records[Outcome](&shared, n)) }

//go:wasmexport wp_on_complete
func wpOnComplete(n uint32) { completed(registered, records[Outcome](&shared, n)) }

//go:wasmexport wp_on_kv_event
func wpOnKVEvent(n uint32) { kvEvents(registered, records[KVEvent](&shared, n)) }

//go:wasmexport wp_plan
func wpPlan(n uint32) { plan(registered, records[Talk](&shared, n)) }
