// Package chunks reads from what LMCache puts how many bytes a token of KV has, so that a tier of so many bytes is
// known to hold so many tokens. The bytes differ from model to model, 100 times between the smallest and the largest.
//
// # What is known, and what is guessed?
//
// A value with LMCache's metadata (redis://: under a key of its own; sagemaker-hyperpod://: before the bytes) says
// its length and its shape, and so its tokens. The native client (resp://) and the multi-process servers put bare
// bytes: all of a model's values have one size then, and how many tokens that is does not stand in them. [lmcache]
// chunk_size says it, else LMCache's default is taken; [Estimate.Guessed] tells that.
//
// A token's KV lies in several values if a model runs on several GPUs or is kept layer by layer. Each of these parts
// has its own keys: the parts seen are added up. So the first put of a model of 8 ranks counts for an eighth, until the
// others have put theirs.
//
// # Several models in one tier
//
// Each has the share of the room that its puts had lately: of the last one to two fillings of the tier. What is no KV
// takes room as well.
//
// # Sources
//
// Keys: model@world_size@worker_id@hash@dtype[@layer][@tag%value], before 0.3.13 behind "vllm@"; multi-process servers:
// model@kv_rank@group@hash[@salt]. Metadata: little-endian int32s length, format, then dtype and four dimensions a
// group. The testdata are keys and bytes of LMCache 0.3.9.post2, 0.4.3 and 0.5.6 as recorded.
package chunks
