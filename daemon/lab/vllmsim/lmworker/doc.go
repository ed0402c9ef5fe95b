// Package lmworker simulates LMCache's worker next to an engine: it registers with a controller and reports the chunks
// that the engine's CPU tier admits and evicts.
//
// # Two generations
//
//	         0.5.6                                          0.3.9
//	PUSH     BatchedKVOperationMsg, FullSyncBatchMsg,       RegisterMsg, HeartbeatMsg, KVAdmitMsg, KVEvictMsg
//	         FullSyncEndMsg, DeRegisterMsg                  and DeRegisterMsg
//	reply    DEALER: RegisterMsg, FullSyncStartMsg,         REQ: nothing
//	         FullSyncStatusMsg, each answered
//	beats    DEALER: HeartbeatMsg, answered with commands   none
//
// message_test.go holds each message to the bytes that real workers of 0.5.6 and 0.3.9.post2 sent, hash_test.go the
// keys to theirs. As the real one a 0.5.6 worker whose RegisterMsg is not answered within 30 s stays mute for its
// life.
//
// # Where it differs
//
// A real worker freezes its cache during a full sync. Here the engine goes on, and what changes meanwhile is reported
// behind the sync. The port that a RegisterMsg names is not open: no controller of the router's calls it. Keys are
// those of PYTHONHASHSEED=0 and the builtin hash, as in a process with vLLM; 0.3.9's of Python 3.12. Like LMCache they
// leave out the salt, so two salts share a key, which is evicted with the last of its chunks.
package lmworker
