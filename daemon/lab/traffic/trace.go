package traffic

import (
	"cmp"
	"io"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/replay"
)

// ReadTrace reads the requests of a trace in the forms that replay.ReadTrace knows, each as a chat of one turn at its
// own time. What comes a delay after the answer before it in its session is a further turn of that chat. The name
// stands in errors. limit bounds the requests; 0 = no limit.
func ReadTrace(r io.Reader, name string, limit int) (Load, error) {
	requests, err := replay.ReadTrace(r, name, limit)
	if err != nil {
		return Load{}, err
	}
	var l Load
	newest := map[uint64]int{} // the chat of each session's newest request
	for i := range requests {
		q := &requests[i]
		turn := Turn{Output: q.OutputTokens, Answer: mix(^uint64(i)), Parts: blocks(q.Blocks, q.InputTokens, q.BlockTokens)}
		if k, known := newest[q.Session]; known && q.Closed {
			chat := &l.Chats[k]
			turn.After, turn.Gap = []int{len(chat.Turns) - 1}, q.Delay
			chat.Turns = append(chat.Turns, turn)
			continue
		}
		newest[q.Session] = len(l.Chats)
		l.Chats = append(l.Chats, Chat{Session: q.Session, Start: q.At, Turns: []Turn{turn}})
	}
	return l, nil
}

// blocks returns the parts of a prompt of so many tokens, by the numbers of its blocks.
func blocks(ids []uint64, tokens, size int) (parts []Part) {
	for i, id := range ids {
		parts = append(parts, Part{ID: mix(id), Tokens: min(size, tokens-i*size)})
	}
	return parts
}

// Faster returns the load with its chats' starts divided by a factor: a trace of a smaller fleet for a larger one.
func (l Load) Faster(factor float64) Load {
	for i := range l.Chats {
		l.Chats[i].Start = time.Duration(float64(l.Chats[i].Start) / factor)
	}
	return l
}

// Part returns the chats that begin within a part of the load, from its beginning on; an until of 0 is the end, and a
// limit of 0 is none.
func (l Load) Part(from, until time.Duration, limit int) Load {
	part := Load{Clients: l.Clients}
	for _, c := range l.Chats {
		if c.Start < from || until > 0 && c.Start >= until || limit > 0 && len(part.Chats) >= limit {
			continue
		}
		c.Start -= from
		part.Chats = append(part.Chats, c)
	}
	return part
}

// Jitter moves each start by up to a second to either side, by a seed: another run of the same recording, whose clock
// is in whole seconds or coarser at times.
func (l Load) Jitter(seed uint64) Load {
	chance := rand.New(rand.NewPCG(seed, 0x717))
	for i := range l.Chats {
		c := &l.Chats[i]
		c.Start = max(0, c.Start+time.Duration((2*chance.Float64()-1)*float64(time.Second)))
	}
	slices.SortStableFunc(l.Chats, func(a, b Chat) int { return cmp.Compare(a.Start, b.Start) })
	return l
}
