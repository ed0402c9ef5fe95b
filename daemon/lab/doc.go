// Package lab compares strategies on a simulated fleet: the same scenarios and seeds for each, many runs side by side.
// It is what `warmpath lab` runs.
//
// # Why a simulation
//
// A routing rule is chosen by figures that take hours to measure on engines, and two measurements differ by more than
// two rules do. In virtual time a run of 12,000 requests takes seconds, on the daemon's own code, and the same seed
// gives the same requests to each rule.
//
// # The wing
//
// What plays users, workers and services is below this folder: vllmsim is a simulated vLLM, replay plays a recorded
// trace against a daemon. certtest, dnstest, kubetest, lendtest, logtest, otlptest, porttest, redistest, waittest and
// wasmtest serve the tests of all packages.
//
// # The packages of the lab, lowest first
//
// trial is the contract: what another router's rule sees, and what a run results in. traffic makes loads, world
// simulates a fleet of vllmsim/engine, served runs the daemon's own code in it, peers has the rules of other routers.
// setup reads scenarios and models, report writes what came out. This package runs every strategy on every scenario and
// seed. commands has the commands of warmpath that run it, and those that run vllmsim and replay.
//
// # What the tests show
//
// Two runs of one seed are equal to the byte (TestTwoRunsAreEqual). A module and its native form make the same
// decisions in a run (TestModulesChooseAsTheirNativeForm). Each request ends once, and tokens are neither lost nor made
// (TestNothingIsLost). A small load has over HTTP, through the daemon and `warmpath sim` in real time, the hit rate
// that it has here within a point, and the median TTFT within a tenth: testdata/lab/check measures both, as no test
// should depend on the clock of a busy machine.
package lab
