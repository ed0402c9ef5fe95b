// Package peers has the routing rules of other projects, as choosers of the lab: to call a rule good, one must run it
// beside what others would have done with the same requests.
//
// Each rule is a rewrite of its public source, named with file and commit at its type, and cut to what decides: health,
// metrics and transports are the lab's. [All] lists them with their default constants and with the grid over which they
// are tuned on the same training seeds as this project's own.
//
// # What is left out
//
// SMG's form for several models, llm-d's other scorers and its picker's lots, Dynamo's queueing and its softmax,
// AIBrix's other policies, Preble's local scheduler. Their sources have dozens of further knobs that are off by
// default.
//
// why.md has the reasons and the details, and what lost.
package peers
