// Mistaken makes the mistake that its option names: what an author may get wrong, and "warmpath plugin check" finds.
package main

import (
	"errors"
	"math"
	"time"

	"github.com/warmpath/warmpath/sdk"
)

type mistaken struct {
	mistake string
	kept    [][]byte
	none    *mistaken
}

func (s *mistaken) Configure(o *sdk.Options) error {
	s.mistake = o.String("mistake", "")
	o.Int("number", 0)
	if s.mistake == "configure" {
		return errors.New("option most: 0 lets nobody in; give 1 or more")
	}
	return nil
}

func (s *mistaken) Route(r *sdk.Request, workers []sdk.Worker) sdk.Decision {
	if do, ok := mistakes[s.mistake]; ok {
		return do(s, r, workers)
	}
	return sdk.To(0).Because(sdk.ReasonTurn)
}

func (s *mistaken) OnFirstToken(*sdk.Outcome) {
	if s.mistake == "first" {
		panic("no such arm")
	}
}

func (s *mistaken) Classify(*sdk.Request) (class int, weight float64) {
	if s.mistake == "classify" {
		panic("no such class")
	}
	return 0, 0
}

var mistakes = map[string]func(*mistaken, *sdk.Request, []sdk.Worker) sdk.Decision{
	"panic":   func(*mistaken, *sdk.Request, []sdk.Worker) sdk.Decision { panic("no such tier") },
	"nil":     func(s *mistaken, _ *sdk.Request, _ []sdk.Worker) sdk.Decision { return sdk.To(len(s.none.kept)) },
	"bounds":  func(_ *mistaken, _ *sdk.Request, w []sdk.Worker) sdk.Decision { return sdk.To(int(w[len(w)].InFlight)) },
	"row":     func(_ *mistaken, _ *sdk.Request, w []sdk.Worker) sdk.Decision { return sdk.To(len(w)) },
	"changes": func(_ *mistaken, _ *sdk.Request, w []sdk.Worker) sdk.Decision { w[0].InFlight++; return sdk.To(0) },
	"twice": func(_ *mistaken, r *sdk.Request, _ []sdk.Worker) sdk.Decision {
		r.Then(0)
		return sdk.To(0)
	},
	"then": func(_ *mistaken, r *sdk.Request, w []sdk.Worker) sdk.Decision {
		r.Then(len(w))
		return sdk.To(0)
	},
	"status": func(_ *mistaken, r *sdk.Request, _ []sdk.Worker) sdk.Decision { return r.Reject(200, "no", 0) },
	"reason": func(*mistaken, *sdk.Request, []sdk.Worker) sdk.Decision { return sdk.To(0).Because(sdk.ReasonOwn + 7) },
	"header": func(*mistaken, *sdk.Request, []sdk.Worker) sdk.Decision { return sdk.To(len(sdk.Header("x-tier")) * 0) },
	"kv": func(*mistaken, *sdk.Request, []sdk.Worker) sdk.Decision {
		_, _ = sdk.KVAdd("n", 1, 0)
		return sdk.To(0)
	},
	"loop": func(s *mistaken, _ *sdk.Request, _ []sdk.Worker) sdk.Decision {
		for s.none == nil {
		}
		return sdk.To(0)
	},
	"recursion": func(_ *mistaken, r *sdk.Request, _ []sdk.Worker) sdk.Decision { return sdk.To(deeper(int(r.Rows)) * 0) },
	"memory": func(s *mistaken, _ *sdk.Request, _ []sdk.Worker) sdk.Decision {
		s.kept = append(s.kept, make([]byte, 64<<20))
		return sdk.To(0)
	},
	"leak": func(s *mistaken, _ *sdk.Request, _ []sdk.Worker) sdk.Decision {
		s.kept = append(s.kept, make([]byte, 32<<10))
		return sdk.To(0)
	},
	"sleep": func(*mistaken, *sdk.Request, []sdk.Worker) sdk.Decision {
		time.Sleep(time.Second)
		return sdk.To(0)
	},
	"declines": func(*mistaken, *sdk.Request, []sdk.Worker) sdk.Decision { return sdk.Decline },
	"nan": func(_ *mistaken, r *sdk.Request, w []sdk.Worker) sdk.Decision {
		var k sdk.Ranking
		for i := range w {
			k.Enter(i, &w[i], math.NaN())
		}
		return k.Choose(r)
	},
	"own": func(_ *mistaken, _ *sdk.Request, w []sdk.Worker) sdk.Decision {
		if err := sdk.SetOwn(w[0].Key, math.NaN()); err != nil {
			panic(err)
		}
		return sdk.To(0)
	},
}

//go:noinline
func deeper(n int) int { return deeper(n+1) + 1 }

func init() { sdk.Register(&mistaken{}) }

func main() {}
