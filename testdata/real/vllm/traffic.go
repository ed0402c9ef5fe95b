package main

import (
	"math/rand/v2"
	"strings"
)

// The shape of the caches' traffic: chats in turns, with one of three system prompts. So many chats at a time are about
// 14,000 tokens, and two workers of 4096 evict all the time.
const (
	chatsAtOnce = 24
	mostTurns   = 6
	systemWords = 110
)

// turn is one request of a chat. All of it is drawn from the seed, also what only one of the situations uses, so that
// every strategy and every situation gets the same requests.
type turn struct {
	chat   int
	system string
	text   string
	tokens int  // of the answer
	raw    bool // the answer may be any tokens, broken UTF-8 too; else whole words, which tokenize to themselves
	seed   int  // of the answer

	router  int  // through which of two
	foreign bool // the chat is another client's, which knows nothing of a router and always asks worker home
	astray  bool // this one request goes to worker home past the router
	home    int
}

// drawTraffic draws n requests.
func drawTraffic(seed uint64, n int) []turn {
	rng := rand.New(rand.NewPCG(seed, 32))
	systems := [3]string{wordsOf(rng, systemWords), wordsOf(rng, systemWords), wordsOf(rng, systemWords)}
	type chat struct {
		turn
		left int
	}
	begun := 0
	begin := func() chat {
		begun++
		return chat{turn{chat: begun - 1, system: systems[rng.IntN(3)], raw: rng.IntN(2) == 0, foreign: rng.IntN(3) == 0,
			home: rng.IntN(2)}, 2 + rng.IntN(mostTurns-1)}
	}
	open := make([]chat, chatsAtOnce)
	for i := range open {
		open[i] = begin()
	}
	all := make([]turn, n)
	for i := range all {
		c := &open[rng.IntN(len(open))]
		t := c.turn
		t.text, t.tokens, t.seed = wordsOf(rng, 15+rng.IntN(56)), 20+rng.IntN(41), rng.IntN(1<<30)
		t.router, t.astray = rng.IntN(2), rng.IntN(3) == 0
		if !t.foreign {
			t.home = rng.IntN(2)
		}
		all[i] = t
		c.left--
		if c.left == 0 {
			*c = begin()
		}
	}
	return all
}

func wordsOf(rng *rand.Rand, n int) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(words[rng.IntN(len(words))])
	}
	return b.String()
}
