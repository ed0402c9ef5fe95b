package engine

// A prompt may end with the beginning of a reply: a client that has lost its worker asks another one for the rest. An
// engine that decodes greedily goes on with the same text. Here the reply is that to the prompt before it.

// ContinueFrom makes the reply the rest of the reply to the first n tokens of the prompt, if the others are its
// beginning. seed is that of NewSequence.
func (q *Sequence) ContinueFrom(n int, seed uint64) {
	q.goesOn(NewSequence(q.ids[:n], q.salt, seed, q.blockSize).Reply, q.ids[n:])
}

// begins reports whether these tokens are the first of the reply.
func (r Reply) begins(ids []uint32) bool {
	for i, id := range ids {
		if r.Token(i) != id {
			return false
		}
	}
	return true
}

// ContinueText is ContinueFrom for a prompt that is one text, of which nobody says where the reply begins. A reply has
// whole tokens, so the text before it may end within a token, and those of all the text are cut elsewhere.
func (q *Sequence) ContinueText(text string, seed uint64) {
	part := len(text) % BytesPerToken
	words := AppendTokens(nil, text[part:])
	all := AppendTokens(nil, text)
	c := chained{root: q.root, size: q.blockSize}
	for i := range words { // the reply begins with words[i], behind a part of all[i]
		s := c.hash()
		if part > 0 {
			s = c.with(AppendTokens(nil, text[i*BytesPerToken:i*BytesPerToken+part])[0])
		}
		if i+part > 0 && q.goesOn(NewReply(Mix(s, seed)), words[i:]) {
			return
		}
		c.add(all[i])
	}
}

// ContinueIDs is ContinueText for a prompt of token ids.
func (q *Sequence) ContinueIDs(seed uint64) {
	c := chained{root: q.root, size: q.blockSize}
	for i, id := range q.ids {
		if i > 0 && q.goesOn(NewReply(Mix(c.hash(), seed)), q.ids[i:]) {
			return
		}
		c.add(id)
	}
}

// goesOn makes the reply the rest of first, if that begins with these tokens.
func (q *Sequence) goesOn(first Reply, begun []uint32) bool {
	if !first.begins(begun) {
		return false
	}
	q.Reply = first
	q.Reply.skip = len(begun)
	return true
}

// chained is the hash of a prompt that comes token by token, as NewSequence makes it of all of it.
type chained struct {
	root, tail uint64
	size       int
	open       []uint32
}

func (c *chained) hash() uint64 {
	if len(c.open) == 0 {
		return c.root
	}
	return c.tail
}

// with returns the hash with one more token.
func (c *chained) with(id uint32) uint64 {
	if len(c.open)+1 == c.size {
		return blockHash(c.root, append(c.open, id))
	}
	return Mix(c.hash(), uint64(id))
}

func (c *chained) add(id uint32) {
	c.tail = Mix(c.hash(), uint64(id))
	c.open = append(c.open, id)
	if len(c.open) == c.size {
		c.root = blockHash(c.root, c.open)
		c.open = c.open[:0]
	}
}
