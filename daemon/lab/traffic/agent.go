package traffic

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// Agent makes the chats of a class sessions of coding agents. Each turn appends what a tool has returned and the answer
// to it. Lengths are tokens. With an Agent, User, Output, Think and Turns of the class are medians of log-normal
// distributions; a sigma of Turns of 0 keeps them geometric.
type Agent struct {
	Products []int     `toml:"products"` // lengths of the beginnings that all sessions of a product share
	Shares   []float64 `toml:"shares"`   // of the products among the sessions
	Projects int       `toml:"projects"` // whose files follow the beginning; 0 = none
	Least    int       `toml:"project_least"`
	Most     int       `toml:"project_most"`

	UserSigma   float64 `toml:"user_sigma"`
	OutputSigma float64 `toml:"output_sigma"`
	TurnsSigma  float64 `toml:"turns_sigma"`
	ThinkSigma  float64 `toml:"think_sigma"`
	MaxThink    float64 `toml:"max_think"` // seconds

	CompactAt int `toml:"compact_at"` // a longer prompt falls back to the product's beginning and
	Summary   int `toml:"summary"`    // so many tokens

	Subagents     float64 `toml:"subagents"` // chance that a turn of the session begins some
	MaxSubagents  int     `toml:"max_subagents"`
	SubagentTurns float64 `toml:"subagent_turns"` // median
	SubagentSigma float64 `toml:"subagent_sigma"`
	Waits         float64 `toml:"waits"` // chance that the session waits for them and reads their last answers

	// Pace over 0 makes turns come at fixed times, as those of a recording do: however long an answer takes, the next turn
	// comes as if each of its tokens took so many seconds.
	Pace float64 `toml:"pace"`
}

// mostResult cuts what a tool returns, as agents do.
const mostResult = 25_000

// check returns what is wrong with an agent of class c.
func (a *Agent) check(c *Class) error {
	switch {
	case len(a.Products) == 0 || len(a.Products) != len(a.Shares) || slices.Min(a.Products) < 1:
		return fmt.Errorf("its agent has %d products and %d shares; give as many of both, and products of a token at least",
			len(a.Products), len(a.Shares))
	case !sound(a.Shares...) || slices.Max(a.Shares) == 0:
		return fmt.Errorf("its agent has shares of %v; give numbers from 0 on, and one above", a.Shares)
	case a.Projects < 0 || a.Projects > maxGroups || a.Least < 0 || a.Most < a.Least || a.Summary < 1 || a.CompactAt < 1:
		return fmt.Errorf("give its agent up to %d projects, project_most not below project_least, compact_at and summary",
			maxGroups)
	case c.MaxTurns < 1:
		return fmt.Errorf("its agent may go on without an end; give max_turns")
	case slices.Max(a.Products)+max(a.Most, a.Summary)+a.CompactAt+2*mostResult > maxTokens:
		return fmt.Errorf("its agent's prompts are longer than %d tokens", maxTokens)
	}
	return a.checkChances()
}

// checkChances returns what is wrong with the distributions that an agent is drawn from.
func (a *Agent) checkChances() error {
	sigmas := []float64{a.UserSigma, a.OutputSigma, a.TurnsSigma, a.ThinkSigma, a.SubagentSigma}
	switch {
	case !sound(sigmas...) || !sound(a.MaxThink, a.SubagentTurns, a.Pace) || slices.Max(sigmas) > 3:
		return fmt.Errorf("its agent has a number below 0 or none, or a sigma over 3")
	case !(a.Subagents >= 0 && a.Subagents <= 1 && a.Waits >= 0 && a.Waits <= 1):
		return fmt.Errorf("its agent has chances of %g and %g; give chances from 0 to 1", a.Subagents, a.Waits)
	case a.MaxSubagents < 0 || a.MaxSubagents > 100:
		return fmt.Errorf("its agent begins up to %d subagents at once; give up to 100", a.MaxSubagents)
	}
	return nil
}

// requests returns the mean requests of a session of class c, subagents' included.
func (a *Agent) requests(c *Class) float64 {
	turns := min(c.Turns*math.Exp(a.TurnsSigma*a.TurnsSigma/2), float64(c.MaxTurns))
	each := min(a.SubagentTurns*math.Exp(a.SubagentSigma*a.SubagentSigma/2), float64(c.MaxTurns))
	return turns * (1 + a.Subagents*float64(1+a.MaxSubagents)/2*each)
}

// A thread is a session, or a subagent of one, while it is drawn.
type thread struct {
	*Class
	dice    *dice
	chat    *Chat
	session uint64
	parent  uint64 // session that began it; 0 = none
	product Part
	parts   []Part
	after   []int // turns that its next one waits for
}

// session draws one session.
func (c *Class) session(d *dice, start time.Duration) Chat {
	chat := Chat{Session: d.number(), Start: start, Caller: c.Caller}
	product := d.weighted(c.Agent.Shares)
	t := thread{Class: c, dice: d, chat: &chat, session: chat.Session,
		product: Part{ID: mix(d.space ^ uint64(product+1)<<32), Tokens: c.Agent.Products[product]}}
	t.parts = []Part{t.product}
	if c.Agent.Projects > 0 {
		t.parts = append(t.parts, c.Agent.files(d))
	}
	t.run(d.turnsOf(c.Turns, c.Agent.TurnsSigma, c.MaxTurns))
	if c.NoName {
		chat.Session = 0
	}
	if c.Agent.Pace > 0 {
		chat.fix(c.Agent.Pace)
	}
	return chat
}

// fix makes the turns come at fixed times, see Agent.Pace.
func (c *Chat) fix(pace float64) {
	for i := range c.Turns {
		t, at := &c.Turns[i], time.Duration(0)
		for _, k := range t.After {
			before := &c.Turns[k] // its Gap is that from the start
			at = max(at, before.Gap+time.Duration(pace*float64(before.Output)*float64(time.Second)))
		}
		t.After, t.Gap = nil, at+t.Gap
	}
}

// files draws a project. Its files are the same text in each session.
func (a *Agent) files(d *dice) Part {
	id := mix(d.space ^ uint64(1+d.IntN(a.Projects))<<44)
	length := a.Least + rand.New(rand.NewPCG(id, 0)).IntN(1+a.Most-a.Least)
	return Part{ID: id, Tokens: max(1, length)}
}

// run draws the turns of a thread.
func (t *thread) run(turns int) {
	a, d := t.Agent, t.dice
	for range turns {
		t.compact()
		t.parts = append(t.parts, Part{ID: d.number(), Tokens: min(d.around(t.User, a.UserSigma), mostResult)})
		turn := Turn{After: t.after, Parts: slices.Clone(t.parts), Answer: d.number(),
			Output: d.around(t.Output, a.OutputSigma)}
		if t.session != t.chat.Session && !t.NoName {
			turn.Session, turn.Parent = t.session, t.parent
		}
		if len(t.after) > 0 {
			gap := min(t.Think*math.Exp(a.ThinkSigma*d.NormFloat64()), a.MaxThink)
			turn.Gap = time.Duration(gap * float64(time.Second))
		}
		t.after = []int{len(t.chat.Turns)}
		t.chat.Turns = append(t.chat.Turns, turn)
		t.parts = append(t.parts, Part{ID: turn.Answer, Tokens: turn.Output, Answer: true})
		if t.parent == 0 && d.Float64() < a.Subagents {
			t.delegate()
		}
	}
}

// compact replaces all but the product's beginning by a summary, if the prompt has grown too long.
func (t *thread) compact() {
	n := 0
	for _, p := range t.parts {
		n += p.Tokens
	}
	if n > t.Agent.CompactAt {
		t.parts = []Part{t.product, {ID: t.dice.number(), Tokens: t.Agent.Summary}}
	}
}

// delegate draws subagents that begin behind the thread's last turn. They have the product's beginning and a task.
func (t *thread) delegate() {
	a, last := t.Agent, t.after
	waits := t.dice.Float64() < a.Waits
	for range 1 + t.dice.IntN(max(1, a.MaxSubagents)) {
		sub := thread{Class: t.Class, dice: t.dice, chat: t.chat, session: t.dice.number(), parent: t.session,
			product: t.product, parts: []Part{t.product}, after: last}
		sub.run(t.dice.turnsOf(a.SubagentTurns, a.SubagentSigma, t.MaxTurns))
		if waits {
			t.after = append(slices.Clone(t.after), sub.after...)
			t.parts = append(t.parts, sub.parts[len(sub.parts)-1])
		}
	}
}

// around draws from a log-normal distribution of that median.
func (d *dice) around(median int, sigma float64) int {
	return max(1, int(float64(median)*math.Exp(sigma*d.NormFloat64())))
}

// turnsOf draws from a log-normal distribution of that median, or a geometric one of that mean for a sigma of 0.
func (d *dice) turnsOf(typical, sigma float64, most int) int {
	if sigma == 0 {
		return d.turns(typical, most)
	}
	return min(d.around(int(typical), sigma), most)
}

// weighted draws an index in proportion to its share.
func (d *dice) weighted(shares []float64) int {
	sum := 0.0
	for _, s := range shares {
		sum += s
	}
	left := d.Float64() * sum
	for i, s := range shares {
		left -= s
		if left < 0 {
			return i
		}
	}
	return len(shares) - 1
}
