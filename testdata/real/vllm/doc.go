// Realvllm starts two real vLLM workers (CPU build, a tiny model of random weights) and a warmpath in front of them,
// and checks what a simulated worker cannot prove: that the engine counts cached tokens where the router sends a
// chat's turns, that a client who leaves frees the engine, and that draining, killing and restarting a worker costs
// no client an answer. With -check caches it compares the tokens that the router believes to be cached with those that
// the engines find, and the hit rates of strategies that follow the engines' KV events and of those that do not; -check
// simulated does the last in virtual time, without a vLLM. With -check pairs one worker computes the prompts of the
// other.
//
//	testdata/real/vllm/run.sh
//
// It prints one line a check with its figure and exits with 1 if one failed. It is under testdata, as it needs 6 GB of
// Python packages and minutes: no part of the module's packages, not in CI. README.md has more.
package main
