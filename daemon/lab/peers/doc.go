// Package peers has the routing rules of other projects, as choosers of the lab: to call a rule good, one must run it
// beside what others would have done with the same requests.
//
// Each rule is a rewrite of its public source, named with file and commit at its type, and cut to what decides: health,
// metrics and transports are the lab's. [All] lists them with their default constants and with the grid over which they
// are tuned on the same training seeds as this project's own.
//
// # What they know
//
// A rule knows what its router would: what it sent where, its own counts, the workers' metrics as old as the last
// scrape, and KV events if it reads any ([StackKVAware], [Dynamo]). What it remembers is bounded as in its source
// under its default constants. In its grid it has as good a memory as this project's (a worker's KV in all its tiers,
// the answers too), so that tuning compares choices and not bookkeeping.
//
// # What is left out
//
// SMG's form for several models, llm-d's other scorers and its picker's lots, Dynamo's queueing and its softmax,
// AIBrix's other policies, Preble's local scheduler. Their sources have dozens of further knobs that are off by
// default.
//
// # Files
//
// catalogue.go has the list. simple.go and ring.go have the rules without a memory, scoring.go those of one formula
// over a memory (remembering.go, memory.go), stack.go, dynamo.go and preble.go the others.
//
// # What lost
//
// Rules as strategies of sdk: they would see rows that this project's host has filled, its index and its learnt speeds,
// which no peer has. One memory for all rules: production-stack's never forgets, which is part of how it fails.
package peers
