package traffic

import "time"

// Load is what the clients of one run send.
type Load struct {
	Chats   []Chat // in order of Start
	Clients int    // over 0: so many clients take the chats one after the other, and Start is not heeded
}

// Requests returns how many there are.
func (l *Load) Requests() (n int) {
	for i := range l.Chats {
		n += len(l.Chats[i].Turns)
	}
	return n
}

// Chat is turns that belong together.
type Chat struct {
	Session uint64 // that a client names; 0 = none
	Tenant  uint64 // 0 = none
	Caller
	Start time.Duration
	Turns []Turn
}

// Caller is who sends a chat, as a router's queue sees it.
type Caller struct {
	Key      string  `toml:"key"`      // the name of the API key; "" = none
	Priority int     `toml:"priority"` // the greater goes first
	Weight   float64 `toml:"weight"`   // the key's share beside the other keys'; 0 = 1

	Headers map[string]string `toml:"headers"` // header fields of the requests, by lower-case name
}

// Turn is one request of a chat.
type Turn struct {
	After  []int         // turns of the chat that end before it comes; none = it comes at the chat's start
	Gap    time.Duration // from there
	Parts  []Part        // of the prompt
	Answer uint64        // number of the answer's part
	Output int           // tokens of the answer

	Session uint64 // that the client names for a subagent's turn; 0 = the chat's
	Parent  uint64 // session that began it; 0 = none
}

// Tokens returns the length of the turn's prompt.
func (t *Turn) Tokens() (n int) {
	for _, p := range t.Parts {
		n += p.Tokens
	}
	return n
}

// Part is a run of a prompt.
type Part struct {
	ID     uint64 // the same number is the same text
	Tokens int
	Answer bool // it is what an engine generated
}
