// Package identity knows by which names agents tell their conversations apart, and how far each conversation is.
//
// [List] reads the names. An agent sends the same header field with every request of a conversation, and many send
// another field with the name of the agent that began it. The fields of two agents are never mixed: a parent counts
// only beside the session's own field. A name is compared whole, as "session-1" is not "session-12", and only among
// those of one API key. A longer one than [MaxName] names nothing.
//
// [Book] counts the turns of a conversation and its tokens of answer. It forgets those that were used longest ago, so
// that clients that make up names take no more memory than it has.
//
// An identity is a hint: it names the conversation in logs and for strategies. Whether its requests stay at one worker
// is decided by package route.
package identity
