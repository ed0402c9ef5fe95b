package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// checkLeaving takes one of two workers away: by SIGKILL under streams of all endpoints, which the other one goes on
// with, and by a drain that hands its conversations over.
func checkLeaving(ctx context.Context, o options, dir string) error {
	ports, err := freePorts(4)
	if err != nil {
		return err
	}
	s := &scene{setup: setup{python: o.python, model: o.model, dir: dir, blocks: 1024, length: 8192}, ports: ports}
	defer s.close()
	if err := s.open(ctx, o.binary); err != nil {
		return err
	}
	drain := func(pool string, by way) func(context.Context, *scene) (string, error) {
		return func(ctx context.Context, s *scene) (string, error) {
			if err := s.route(ctx, o.binary, pool); err != nil {
				return "", err
			}
			return s.drained(ctx, o.binary, by)
		}
	}
	return s.play(ctx, []check{
		{"plain drain", drain("", byNothing), false},
		{"hand-over", drain("hand_over_bytes = 67108864\n", byHandOver), false},
		{"continue", func(ctx context.Context, s *scene) (string, error) {
			if err := s.route(ctx, o.binary, "continue = 1\n"); err != nil {
				return "", err
			}
			return checkContinue(ctx, s)
		}, true},
		{"continued, back", checkKillReturn, false},
	})
}

// alikeEnough is the share of the streams whose worker was killed that must say what an undisturbed one says.
const alikeEnough = .95

// checkContinue kills a worker under greedy streams of each endpoint. Each must end well. Afterwards the other worker
// alone is asked the same, as many at a time, which shows what each would have said. An engine's batches change its
// arithmetic a little, so the streams that nothing has disturbed are counted too.
func checkContinue(ctx context.Context, s *scene) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 8*time.Minute)
	defer cancel()
	const streams = 40
	tokens := s.pace(ctx, 6*time.Second)
	var texts [streams]string
	for i := range texts {
		texts[i] = fresh(40)
	}
	ask := func(c *client, i int) *answer {
		k := kinds[1+i%4*2] // the streamed ones of chat, completions, responses and messages
		return c.post(ctx, k.path, k.body(texts[i], tokens))
	}
	var got, want [streams]*answer
	var all sync.WaitGroup
	for i := range got {
		all.Go(func() { got[i] = ask(s.router.client, i) })
	}
	if err := s.waitRunning(ctx, func(n float64) bool { return n == streams }); err != nil {
		return "", err
	}
	time.Sleep(2 * time.Second)
	s.workers[1].kill()
	all.Wait()
	for i := range want {
		all.Go(func() { want[i] = ask(s.workers[0].client, i) })
	}
	all.Wait()
	var cut, alike, stayed, same int
	var wrong []error
	for i, a := range got {
		if err := errors.Join(a.fault(), want[i].fault()); err != nil {
			wrong = append(wrong, fmt.Errorf("%s at %s: %w", kinds[1+i%4*2].path, a.worker(), err))
			continue
		}
		equal := a.says() == want[i].says()
		switch {
		case a.worker() == s.workers[1].id && equal:
			alike++
			fallthrough
		case a.worker() == s.workers[1].id:
			cut++
			if !equal && len(wrong) == 0 {
				fmt.Printf("      %s: %q\n      undisturbed: %q\n", kinds[1+i%4*2].path, a.says(), want[i].says())
			}
		case equal:
			same++
			fallthrough
		default:
			stayed++
		}
	}
	figure := fmt.Sprintf("%d streams of %d tokens, %d of them at the worker that was killed: %d failed; text as an "+
		"undisturbed one's in %d of %d, and in %d of %d that nothing has disturbed", streams, tokens, cut, len(wrong),
		alike, cut, same, stayed)
	if cut == 0 || float64(alike) < alikeEnough*float64(cut) {
		wrong = append(wrong, errors.New("too few are alike"))
	}
	if err := errors.Join(wrong...); err != nil {
		return "", fmt.Errorf("%s\n%w", figure, err)
	}
	return figure, nil
}

// says is what an answer says, and why it ends.
func (a *answer) says() string {
	var b strings.Builder
	a.each(func(v any) { gatherSaid(&b, v) })
	return b.String()
}

// way is how a worker's conversations get to another one.
type way uint8

const (
	byNothing  way = iota
	byHandOver     // the router sends their prompts there
	byTier         // the engines' own LMCache stores what they compute, and finds it
)

// drained has chats of two turns, then drains a worker with the command, and has the next turn of each chat that was
// there. The engine's own count shows what the other worker then has of its prompt.
func (s *scene) drained(ctx context.Context, binary string, by way) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 4*time.Minute)
	defer cancel()
	const chats = 6
	messages, at := make([][]any, chats), make([]string, chats)
	turn := func(i int) (*answer, error) {
		messages[i] = append(messages[i], said("user", fresh(10))...)
		a := s.router.client.post(ctx, "/v1/chat/completions", chatBody(messages[i], 16, false))
		messages[i] = append(messages[i], said("assistant", a.reply())...)
		return a, a.fault()
	}
	for i := range messages {
		messages[i] = said("system", fresh(500))
		for range 2 {
			a, err := turn(i)
			if err != nil {
				return "", err
			}
			at[i] = a.worker()
		}
	}
	id := s.workers[0].id
	args := []string{"drain", id, "--admin", strings.TrimPrefix(s.router.admin.base, "http://"), "--token-file",
		filepath.Join(s.setup.dir, "token")}
	if by == byHandOver {
		args = append(args, "--hand-over", "--within", "30s")
	}
	values := 0
	if by == byTier {
		var err error
		values, err = s.stored(ctx)
		if err != nil {
			return "", err
		}
	}
	began := time.Now()
	if out, err := exec.CommandContext(ctx, binary, args...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("warmpath %s: %w: %s", strings.Join(args, " "), err, out)
	}
	defer s.router.admin.send(context.WithoutCancel(ctx), "DELETE", "/api/v1/pools/main/workers/"+id+"/drain", nil, nil)
	there := 0
	for _, w := range at {
		if w == id {
			there++
		}
	}
	if err := s.awaitMoves(ctx, map[way]int{byHandOver: there}[by]); err != nil {
		return "", err
	}
	took := time.Since(began)
	var shares []float64
	for i := range messages {
		a, err := turn(i)
		if err != nil {
			return "", err
		}
		if at[i] != id {
			continue
		}
		if a.worker() == id {
			return "", fmt.Errorf("chat %d went to %s, which is drained", i, id)
		}
		shares = append(shares, float64(max(0, a.cached()))/float64(a.number("usage", "prompt_tokens")))
	}
	if len(shares) == 0 {
		return "", fmt.Errorf("no chat was at %s", id)
	}
	figure := fmt.Sprintf("%d chats, %d values in the tier, moved within %.1f s; cached of their next prompts at the "+
		"other worker: %.3f at least, %.3f at most", there, values, took.Seconds(), slices.Min(shares), slices.Max(shares))
	if by != byNothing && slices.Min(shares) < .9 || by == byNothing && slices.Max(shares) > 0 {
		return "", errors.New(figure)
	}
	return figure, nil
}

// awaitMoves waits until the router has moved so many conversations more than none.
func (s *scene) awaitMoves(ctx context.Context, want int) error {
	ctx, cancel := context.WithTimeout(ctx, 35*time.Second)
	defer cancel()
	for {
		n, err := s.router.admin.sum(ctx, `warmpath_conversation_moves_total{pool="main",result="moved"`)
		if err == nil && n >= float64(want) {
			return nil
		}
		select {
		case <-ctx.Done():
			failed, _ := s.router.admin.sum(context.WithoutCancel(ctx),
				`warmpath_conversation_moves_total{pool="main",result="failed"`)
			return fmt.Errorf("%v of %d conversations have moved, %v could not (%v)", n, want, failed, err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}
