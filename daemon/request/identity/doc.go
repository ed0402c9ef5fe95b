// Package identity finds the name that an agent gives its conversation, and counts the turns of each conversation.
//
// [List] reads the names. An agent sends the same header field with every request of a conversation, and many send
// another field with the name of the agent that began it. The fields of two agents are never mixed: a parent counts
// only beside the session's own field. A name is compared whole, as "session-1" is not "session-12", and only among
// those of one API key. A longer one than [MaxName] names nothing.
//
// [Book] counts the turns of a conversation and its tokens of answer. It drops the least recently used ones, so that
// clients with random names take bounded memory. lines.go finds the conversations of clients that name none, by the
// hashes of their prompts' blocks.
//
// An identity is a hint: it names the conversation in logs and for strategies. Whether its requests stay at one worker
// is decided by package route.
package identity
