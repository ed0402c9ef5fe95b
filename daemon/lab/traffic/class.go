package traffic

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// Class is one kind of chats of a load. Lengths are tokens.
type Class struct {
	Rate float64 `toml:"rate"` // chats a second and worker that begin

	// Samples over 1 makes so many chats of each, which begin at the same time with the same prompt and go on as they are
	// answered: the samples of a group, as trainers draw them (GRPO).
	Samples int `toml:"samples"`

	Groups int     `toml:"groups"` // a chat begins with the shared text of one of so many groups; 0 = with none
	Shared int     `toml:"shared"` // length of that text
	Skew   float64 `toml:"skew"`   // group k is chosen in proportion to 1/k^Skew; 0 = all alike
	Tenant bool    `toml:"tenant"` // each group is a tenant

	Document int     `toml:"document"` // of the chat's own, at its beginning; mean
	Spread   float64 `toml:"spread"`   // lengths vary evenly by this part of the mean, up and down
	User     int     `toml:"user"`     // mean length of what the user writes in a turn
	Output   int     `toml:"output"`   // mean length of an answer
	Turns    float64 `toml:"turns"`    // mean of a geometric distribution; at least 1
	MaxTurns int     `toml:"max_turns"`
	Think    float64 `toml:"think"` // mean seconds between an answer and the next turn

	// Branches over 0 makes a chat an agent's tree: each turn is followed by so many turns at once that continue it, each
	// with its own text, and the next turn comes when all of them have ended, behind their answers.
	Branches int  `toml:"branches"`
	NoName   bool `toml:"no_name"` // clients name no session

	Caller

	Agent *Agent `toml:"agent"` // nil = people
}

// Surge multiplies the rate at which chats begin for a while. Times are seconds.
type Surge struct {
	From   float64 `toml:"from"`
	Until  float64 `toml:"until"`
	Factor float64 `toml:"factor"`
}

// Plan is a load to be drawn.
type Plan struct {
	Classes  []Class
	Surges   []Surge
	Seconds  float64 // for which chats begin
	Requests int     // over 0: the load is cut after so many, in order of the chats' starts
	Workers  int     // that the rates are for
	Clients  int     // over 0: a closed loop; Rate is then the share of a class
}

// limits of a plan, that a slip of the pen does not fill the memory.
const (
	maxChats    = 1_000_000
	maxRequests = 10 * maxChats
	maxGroups   = 1_000_000
	maxSamples  = 1000
	maxTokens   = 1 << 20
)

// Check returns what is wrong with a plan.
func (p *Plan) Check() error {
	rate := 0.0
	for i := range p.Classes {
		rate += p.Classes[i].Rate
		if err := p.Classes[i].check(); err != nil {
			return fmt.Errorf("traffic: class %d: %w", i+1, err)
		}
	}
	for i, s := range p.Surges {
		if !sound(s.From, s.Until, s.Factor) || s.Until <= s.From {
			return fmt.Errorf("traffic: surge %d has times from %g until %g and the factor %g; give numbers from 0 on, "+
				"until after from", i+1, s.From, s.Until, s.Factor)
		}
	}
	switch {
	case len(p.Classes) == 0 || rate == 0:
		return fmt.Errorf("traffic: no class of chats has a rate; give one")
	case !sound(p.Seconds) || p.Requests < 0 || p.Clients < 0:
		return fmt.Errorf("traffic: seconds is %g, requests %d and clients %d; give numbers from 0 on", p.Seconds, p.Requests,
			p.Clients)
	case p.Seconds == 0 && p.Requests == 0:
		return fmt.Errorf("traffic: neither seconds nor requests; give one of them")
	case p.Clients > 0 && p.Requests == 0:
		return fmt.Errorf("traffic: clients of a closed loop want a number of requests; give requests")
	case p.Requests > maxChats || p.Clients > maxChats:
		return fmt.Errorf("traffic: %d requests of %d clients; give up to %d of each", p.Requests, p.Clients, maxChats)
	}
	chats, requests := p.expected()
	switch {
	case chats > maxChats:
		return fmt.Errorf("traffic: %.0f chats are over %d; give fewer seconds or a lower rate", chats, maxChats)
	case requests > maxRequests:
		return fmt.Errorf("traffic: %.0f requests in %.0f chats are over %d; give fewer turns or branches", requests, chats,
			maxRequests)
	}
	return nil
}

// check returns what is wrong with a class.
func (c *Class) check() error {
	longest := float64(c.Shared) + float64(c.Document+c.User)*(1+c.Spread) + float64(c.User+c.Output)*float64(c.MaxTurns)
	switch {
	case !sound(c.Rate, c.Skew, c.Spread, c.Turns, c.Think) || c.Spread > 1 || c.Branches < 0 || c.MaxTurns < 0:
		return fmt.Errorf("it has a number below 0 or none, or a spread over 1")
	case c.Samples < 0 || c.Samples > maxSamples:
		return fmt.Errorf("it has %d samples; give up to %d", c.Samples, maxSamples)
	case c.Groups < 0 || c.Groups > maxGroups:
		return fmt.Errorf("it has %d groups; give up to %d", c.Groups, maxGroups)
	case c.User < 1 || c.Output < 1 || c.Shared < 0 || c.Document < 0 || longest > maxTokens:
		return fmt.Errorf("give user and output at least 1, and prompts up to %d tokens", maxTokens)
	case c.Agent != nil:
		return c.Agent.check(c)
	}
	return nil
}

// sound reports whether all are numbers from 0 on.
func sound(all ...float64) bool {
	return !slices.ContainsFunc(all, func(v float64) bool { return !(v >= 0 && v <= math.MaxFloat64) })
}

// expected returns how many chats begin on average, and how many requests they are before the load is cut.
func (p *Plan) expected() (chats, requests float64) {
	seconds := p.Seconds
	for _, s := range p.Surges {
		seconds += max(0, min(s.Until, p.Seconds)-s.From) * max(0, s.Factor-1)
	}
	for i := range p.Classes {
		c := &p.Classes[i]
		n := c.Rate * seconds * float64(max(1, p.Workers))
		if p.Requests > 0 && c.Rate > 0 && (p.Seconds == 0 || n > float64(p.Requests)) {
			n = float64(p.Requests)
		}
		n *= float64(max(1, c.Samples))
		turns := max(1, c.Turns)
		if c.MaxTurns > 0 {
			turns = min(turns, float64(c.MaxTurns))
		}
		chats += n
		if c.Agent != nil {
			requests += n * c.Agent.requests(c)
			continue
		}
		requests += n * turns * float64(1+c.Branches)
	}
	return chats, requests
}

// Draw makes the load of a plan and a seed. The same seed gives the same chats in each class, whatever the others are.
func (p *Plan) Draw(seed uint64) (Load, error) {
	if err := p.Check(); err != nil {
		return Load{}, err
	}
	l := Load{Clients: p.Clients}
	for i := range p.Classes {
		d := dice{Rand: rand.New(rand.NewPCG(seed, uint64(i))), space: mix(mix(seed) + uint64(i))}
		l.Chats = append(l.Chats, p.draw(&p.Classes[i], &d)...)
	}
	slices.SortStableFunc(l.Chats, func(a, b Chat) int { return int(a.Start - b.Start) })
	l.cut(p.Requests)
	if len(l.Chats) == 0 {
		return l, fmt.Errorf("traffic: no chat begins within %g s with seed %d; give more seconds or a higher rate",
			p.Seconds, seed)
	}
	return l, nil
}

// draw makes the chats of one class.
func (p *Plan) draw(c *Class, d *dice) (chats []Chat) {
	rate := c.Rate * float64(max(1, p.Workers))
	for at := 0.0; rate > 0; {
		next := at + d.ExpFloat64()/(rate*p.factor(at))
		if edge := p.lull(at); next >= edge { // chance has no memory: the wait begins anew
			at = edge
			continue
		}
		at = next
		if p.Seconds > 0 && at >= p.Seconds || p.Requests > 0 && len(chats) >= p.Requests {
			return chats
		}
		draw := c.chat
		if c.Agent != nil {
			draw = c.session
		}
		chat := draw(d, time.Duration(at*float64(time.Second)))
		chats = append(chats, chat)
		for range c.Samples - 1 {
			chats = append(chats, draw(d, chat.Start).begunAs(&chat))
		}
	}
	return nil
}

// begunAs returns the chat with the parts of its first prompt replaced by those of another chat of the class.
func (c Chat) begunAs(other *Chat) Chat {
	by := map[Part]Part{}
	for i, p := range c.Turns[0].Parts {
		by[p] = other.Turns[0].Parts[i]
	}
	for i := range c.Turns {
		t := &c.Turns[i]
		t.Parts = slices.Clone(t.Parts)
		for k, p := range t.Parts {
			if same, is := by[p]; is {
				t.Parts[k] = same
			}
		}
	}
	return c
}

func (p *Plan) factor(at float64) float64 {
	for _, s := range p.Surges {
		if at >= s.From && at < s.Until {
			return max(s.Factor, 1e-9)
		}
	}
	return 1
}

// lull returns when the next surge of a factor below 1 begins or ends; +Inf if none does.
func (p *Plan) lull(after float64) float64 {
	next := math.Inf(1)
	for _, s := range p.Surges {
		for _, edge := range [...]float64{s.From, s.Until} {
			if s.Factor < 1 && edge > after {
				next = min(next, edge)
			}
		}
	}
	return next
}

// cut leaves the first n requests, of whole chats and the beginning of the last one; 0 = all.
func (l *Load) cut(n int) {
	for i := range l.Chats {
		turns := &l.Chats[i].Turns
		if n > 0 && len(*turns) >= n {
			*turns = (*turns)[:n]
			l.Chats = l.Chats[:i+1]
			return
		}
		n -= len(*turns)
	}
}

// dice draws one class's chats.
type dice struct {
	*rand.Rand
	space uint64 // of the numbers of parts
	parts uint64 // numbered so far
	zipf  []float64
}

// number returns a number that no other part has.
func (d *dice) number() uint64 {
	d.parts++
	return mix(d.space + d.parts)
}

// length draws around a mean.
func (d *dice) length(mean int, spread float64) int {
	return max(1, int(float64(mean)*(1+spread*(2*d.Float64()-1))))
}

// turns draws from a geometric distribution of that mean.
func (d *dice) turns(mean float64, most int) int {
	n := 1
	if mean > 1 {
		n += int(math.Log(1-d.Float64()) / math.Log(1-1/mean))
	}
	if most > 0 {
		n = min(n, most)
	}
	return n
}

// group draws one of n groups, from 1.
func (d *dice) group(n int, skew float64) int {
	if len(d.zipf) != n {
		d.zipf = make([]float64, n)
		sum := 0.0
		for k := range d.zipf {
			sum += math.Pow(float64(k+1), -skew)
			d.zipf[k] = sum
		}
	}
	i, _ := slices.BinarySearch(d.zipf, d.Float64()*d.zipf[n-1])
	return min(i, n-1) + 1
}

// chat draws one chat.
func (c *Class) chat(d *dice, start time.Duration) Chat {
	chat := Chat{Session: d.number(), Start: start, Caller: c.Caller}
	var parts []Part
	if c.Groups > 0 && c.Shared > 0 {
		g := uint64(d.group(c.Groups, c.Skew))
		parts = append(parts, Part{ID: mix(d.space ^ g<<32), Tokens: c.Shared})
		if c.Tenant {
			chat.Tenant = g
		}
	}
	if c.Document > 0 {
		parts = append(parts, Part{ID: d.number(), Tokens: d.length(c.Document, c.Spread)})
	}
	var after []int
	for range d.turns(c.Turns, c.MaxTurns) {
		parts = append(parts, Part{ID: d.number(), Tokens: d.length(c.User, c.Spread)})
		turn := Turn{After: after, Parts: parts[:len(parts):len(parts)], Answer: d.number(),
			Output: d.length(c.Output, c.Spread)}
		if len(after) > 0 {
			turn.Gap = time.Duration(d.ExpFloat64() * c.Think * float64(time.Second))
		}
		after = []int{len(chat.Turns)}
		chat.Turns = append(chat.Turns, turn)
		parts = append(parts, Part{ID: turn.Answer, Tokens: turn.Output, Answer: true})
		if c.Branches > 0 {
			parts, after = c.branch(d, &chat, parts)
		}
	}
	if c.NoName {
		chat.Session = 0
	}
	return chat
}

// branch adds the turns that continue the last one side by side. It returns the prompt that goes on with their answers,
// and the turns that it waits for.
func (c *Class) branch(d *dice, chat *Chat, parts []Part) (joined []Part, after []int) {
	joined = slices.Clone(parts)
	last := len(chat.Turns) - 1
	for range c.Branches {
		own := append(slices.Clone(parts), Part{ID: d.number(), Tokens: d.length(c.User, c.Spread)})
		turn := Turn{After: []int{last}, Parts: own, Answer: d.number(), Output: d.length(c.Output, c.Spread)}
		after = append(after, len(chat.Turns))
		chat.Turns = append(chat.Turns, turn)
		joined = append(joined, Part{ID: turn.Answer, Tokens: turn.Output, Answer: true})
	}
	return joined, after
}
