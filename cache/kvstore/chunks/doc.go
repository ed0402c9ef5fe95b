// Package chunks measures in LMCache's puts how many bytes a token of KV has, and so how many tokens a tier can hold.
// The bytes differ from model to model, 100 times between the smallest and the largest.
//
// # What is known, and what is guessed?
//
// A value with LMCache's metadata (redis://: under a key of its own; sagemaker-hyperpod://: before the bytes) shows its
// length and its shape, and so its tokens. The native client (resp://) and the multi-process servers put bare bytes:
// all of a model's values have one size then, which does not show the tokens. [lmcache] chunk_size gives their number;
// else LMCache's default is assumed, and [Estimate.Guessed] is set.
//
// A token's KV is in several values if a model runs on several GPUs or is kept layer by layer. Each of these parts has
// its own keys: the parts seen are added up. So the first put of a model of 8 ranks counts for an eighth, until the
// others have put theirs.
//
// # Sources
//
// Keys: model@world_size@worker_id@hash@dtype[@layer][@tag%value], before 0.3.13 behind "vllm@"; multi-process servers:
// model@kv_rank@group@hash[@salt]. Metadata: little-endian int32s length, format, then dtype and four dimensions a
// group. The testdata are keys and bytes of LMCache 0.3.9.post2, 0.4.3 and 0.5.6 as recorded.
//
// why.md has the reasons and the details, and what lost.
package chunks
