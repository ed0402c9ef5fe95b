package exchange_test

// mutants are found by an invariant of the model check.
var mutants = []mutant{
	{rule: "one failed answer sets nobody aside", caught: "evidence", edits: []edit{
		{file: "fleet/judge/evidence.go", text: `words: "failed answer", cause: Failing, requests: 5`,
			instead: `words: "failed answer", cause: Failing, requests: 1`},
	}},
	{rule: "one broken connection sets nobody aside", caught: "evidence", edits: []edit{
		{file: "fleet/judge/evidence.go", text: `words: "connection broke", cause: Failing, requests: 5`,
			instead: `words: "connection broke", cause: Failing, requests: 1`},
	}},
	{rule: "one abort sets nobody aside", caught: "evidence", edits: []edit{
		{file: "fleet/judge/evidence.go", text: `cause: GoingAway, requests: 3`,
			instead: `cause: GoingAway, requests: 1`},
	}},
	{rule: "one refusal sets nobody aside", caught: "evidence", edits: []edit{
		{file: "fleet/judge/evidence.go", text: `cause: Refusing, requests: 3`,
			instead: `cause: Refusing, requests: 1`},
	}},
	{rule: "failures set a worker aside", caught: "share", edits: []edit{
		{file: "fleet/judge/evidence.go", text: `words: "failed answer", cause: Failing`,
			instead: `words: "failed answer"`},
	}},
	{rule: "broken connections set a worker aside", caught: "share", edits: []edit{
		{file: "fleet/judge/evidence.go", text: `words: "connection broke", cause: Failing`,
			instead: `words: "connection broke"`},
	}},
	{rule: "aborts set a worker aside", caught: "share", edits: []edit{
		{file: "fleet/judge/evidence.go", text: `words: "gives up what it accepts", cause: GoingAway`,
			instead: `words: "gives up what it accepts"`},
	}},
	{rule: "a refusal is compared with another worker's answer", caught: "share", edits: []edit{
		{file: "fleet/worker/ticket.go", text: `if e.health.IsDoubtful(t.request.Class) {`,
			instead: `if e == nil {`},
	}},
	{rule: "a failure that another worker repeats is taken back", caught: "evidence|share", edits: []edit{
		{file: "request/attempt/history.go", text: `s.trip.Excuse(k, time.Now())`,
			instead: ``},
	}},
	{rule: "and does not count against that one", caught: "evidence|share", edits: []edit{
		{file: "fleet/judge/verdict.go", text: `if o.Excused {`,
			instead: `if false {`},
	}},
	{rule: "half of the workers stay", caught: "half", edits: []edit{
		{file: "fleet/worker/changes.go", text: `return 2*out <= there`,
			instead: `return true`},
	}},
	{rule: "silence is no death", caught: "silence|refused", edits: []edit{
		{file: "fleet/judge/checks.go", text: `		return Silent
`,
			instead: `		return Down
`},
	}},
	{rule: "one late check is none", caught: "one late|one 503", edits: []edit{
		{file: "fleet/judge/checks.go", text: `maxLate = 2 `,
			instead: `maxLate = 1 `},
	}},
	{rule: "a worker whose answers flow is not silent", caught: "silence", edits: []edit{
		{file: "fleet/judge/checks.go", text: `h.late >= maxLate && !flows`,
			instead: `h.late >= maxLate`},
	}},
	{rule: "suspects get what nobody else takes", caught: "refused", edits: []edit{
		{file: "fleet/worker/snapshot.go", text: `s.takeBy(trusting)`,
			instead: ``},
	}},
	{rule: "full workers get what nobody else takes", caught: "refused", edits: []edit{
		{file: "fleet/worker/snapshot.go", text: `s.takeBy(crowded)`,
			instead: ``},
	}},
	{rule: "one 503 on /health is no death", caught: "one 503", edits: []edit{
		{file: "fleet/judge/checks.go", text: `maxIll  = 2 `,
			instead: `maxIll  = 1 `},
	}},
	{rule: "a process of before is a balancer", caught: "balancer", edits: []edit{
		{file: "fleet/judge/process.go", text: `return OldProcess`,
			instead: `return NewProcess`},
	}},
	{rule: "a balancer has no restarts", caught: "balancer", edits: []edit{
		{file: "fleet/judge/process.go", text: `case p.many || p.began == 0:`,
			instead: `case p.began == 0:`},
	}},
	{rule: "a full worker is left alone for a moment", caught: "goodput", edits: []edit{
		{file: "fleet/judge/headroom.go", text: `return has < r.full+`,
			instead: `return true || has < r.full+`},
	}},
	{rule: "a full worker is not sick", caught: "goodput|evidence", edits: []edit{
		{file: "fleet/judge/evidence.go", text: `Busy:     {words: "says that it is busy", crowds: true}`,
			instead: `Busy:     {words: "says that it is busy", cause: Failing, requests: 5}`},
	}},
	{rule: "a request ends two engines at most", caught: "two engines", edits: []edit{
		{file: "request/admission/lethal.go", text: `		if now.Sub(x.At) < LethalFor &&`,
			instead: `		if false &&`},
	}},
	{rule: "in its attempts too", caught: "two engines", edits: []edit{
		{file: "request/route/attempts.go", text: `const maxBroken = 2`,
			instead: `const maxBroken = 9`},
	}},
	{rule: "and repeats count with them", caught: "two engines", edits: []edit{
		{file: "request/attempt/history.go", text: `	h.rule.Broken = int32(deaths)
`,
			instead: ``},
	}},
	{rule: "a good check does not speak for all behind a balancer", caught: "two engines", edits: []edit{
		{file: "fleet/judge/health.go", text: `!h.process.many && `,
			instead: ``},
	}},
	{rule: "only what another takes is given up", caught: "given up", edits: []edit{
		{file: "fleet/worker/pool.go", text: `r.First == 0 && f.takesElsewhere(r, w.endpoint, at)`,
			instead: `r.First == 0`},
	}},
	{rule: "who had it does not take it", caught: "given up", edits: []edit{
		{file: "fleet/worker/changes.go", text: `r.tried&(1<<(w.slot%64)) == 0 &&`,
			instead: ``},
	}},
	{rule: "who waits for a trial does not take all", caught: "given up", edits: []edit{
		{file: "fleet/worker/changes.go", text: `!w.health.IsSetAside() &&`,
			instead: ``},
	}},
	{rule: "what has begun is never given up", caught: "given up", edits: []edit{
		{file: "fleet/worker/pool.go", text: `r.First == 0 && f.takesElsewhere`,
			instead: `f.takesElsewhere`},
		{file: "request/attempt/attempt.go", text: `waits == forMore || `,
			instead: ``},
	}},
	{rule: "a request is moved once", caught: "blocking", edits: []edit{
		{file: "request/attempt/history.go", text: `	case journal.Moved, journal.Paused:
		h.moved = true
`,
			instead: ``},
	}},
	{rule: "requests at a silent worker wait three times as long", caught: "blocking", edits: []edit{
		{file: "fleet/worker/changes.go", text: `silentGraces = 3`,
			instead: `silentGraces = 1`},
	}},
	{rule: "a second look is taken before a worker is asked again", caught: "two engines|refused", edits: []edit{
		{file: "request/route/choice.go", text: `if c.order.left() > 0 || !c.MayWiden(at) {`,
			instead: `if true {`},
	}},
	{rule: "a trial that is excused changes nothing", caught: "came back|share", edits: []edit{
		{file: "fleet/judge/breaker.go", text: `*b = breaker{opening: b.before, until: now, tallies: b.had}`,
			instead: `b.shut()`},
	}},
	{rule: "workers that had the request hide nobody", caught: "refused", edits: []edit{
		{file: "fleet/worker/snapshot.go", text: `standing != s.standing && !tried {`,
			instead: `standing != s.standing {`},
	}},
	{rule: "a worker that the request may have ended is checked", caught: "two engines", edits: []edit{
		{file: "fleet/judge/verdict.go", text: `if o.Kind == Broken { // the request`,
			instead: `if false { // the request`},
	}},
}
