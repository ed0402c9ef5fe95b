package admission

import (
	"cmp"
	"context"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/warmpath/warmpath/daemon/request/account"
	"github.com/warmpath/warmpath/daemon/request/epoch"
	"github.com/warmpath/warmpath/daemon/request/message"
	"github.com/warmpath/warmpath/daemon/request/prompt"
	"github.com/warmpath/warmpath/daemon/request/record"
	"github.com/warmpath/warmpath/daemon/request/session"
)

// A response in the background, a batch or a video is made after the request for it has been answered. It belongs to
// its key until it has ended: the request's account goes on, with the key's place and its tokens. The router learns
// the job's progress from the answers that the client reads, and asks the worker.

// Bounds on the jobs that are followed. A job beyond them gives its place and its tokens back when the request for it
// is answered.
const (
	maxFollowed = 4096
	maxFollow   = time.Hour // a job that takes longer is charged no more
	maxUnheard  = 5         // questions in a row that get no answer; its worker is gone then
	maxAnswer   = 16 << 20  // bytes
)

// running are the statuses of a job that has not ended: of OpenAI's responses, batches and videos, and the like.
var running = map[string]bool{"queued": true, "in_progress": true, "validating": true, "finalizing": true,
	"cancelling": true, "running": true, "processing": true, "submitted": true}

// Running reports whether that is the status of a job that has not ended.
func Running(status string) bool { return running[status] }

// underway has the jobs that are followed. Its zero value is ready.
type underway struct {
	mu sync.Mutex // guards the rest
	of map[session.Name]*job
}

// job is one of them.
type job struct {
	name      session.Name
	account   *account.Account
	work      account.Work
	count     account.Hold
	pool      *epoch.Pool
	url, path string // of the worker, and of the job at it
	began     time.Time
	timer     *time.Timer // of the next question
	unheard   int
}

// Follows reports whether the job is followed that the request reads, cancels or deletes.
func (u *underway) Follows(in *message.Inbound) bool {
	if in.Endpoint.ID == "" || in.Endpoint.Creates && !in.Endpoint.Stored {
		return false
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.of) > 0 && u.of[in.Stored(in.Endpoint.ID)] != nil
}

// Begin follows a job that a request has made, of that id and below that path of a worker.
func (u *underway) Begin(r *Request, id, worker, path string) {
	j := &job{name: r.In.Stored(strings.Clone(id)), account: r.In.Account, pool: r.Pool, began: time.Now(), url: worker,
		path: strings.Clone(path) + "/" + url.PathEscape(id)}
	u.mu.Lock()
	defer u.mu.Unlock()
	if j.pool.Asking == nil || u.of[j.name] != nil || len(u.of) >= maxFollowed {
		return
	}
	if u.of == nil {
		u.of = map[session.Name]*job{}
	}
	u.of[j.name] = j
	j.account.Spent().UseAll()
	j.account.Begin(&j.work, false)
	j.account.Take(&j.count, account.Job, 1)
	j.timer = time.AfterFunc(j.pause(), func() { u.ask(j) })
}

// pause returns the time until the next question: a second at first, then a fraction of the job's time so far.
func (j *job) pause() time.Duration {
	d := min(max(time.Since(j.began)/8, time.Second), 15*time.Second)
	return d*3/4 + rand.N(d/2)
}

// ask asks the worker how far a job is.
func (u *underway) ask(j *job) {
	questions <- struct{}{}
	ended, used := j.hasEnded()
	<-questions
	if ended || time.Since(j.began) > maxFollow {
		u.End(j.name, used)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.of[j.name] == j {
		j.timer.Reset(j.pause())
	}
}

// questions has those to workers that are under way.
var questions = make(chan struct{}, 32)

// hasEnded asks the worker. A job of which the worker does not know has ended, and so has one whose worker is gone.
func (j *job) hasEnded() (ended bool, used record.Usage) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	j.unheard++
	code, text, err := j.pool.Asking.Get(ctx, j.url, j.path, maxAnswer)
	if err == nil && code < 300 {
		reply := prompt.NewReply(prompt.Other, false, 0)
		reply.Skim()
		reply.Body(text)
		used = record.Usage(reply.Usage())
		switch status := reply.Status(); {
		case running[status]:
			j.unheard = 0
		case status != "":
			return true, used
		}
	}
	ended = code == http.StatusNotFound || code == http.StatusGone || err == epoch.ErrRemoved || j.unheard > maxUnheard
	return ended, used
}

// End ends a job, once, and charges the engine's count of tokens to its key.
func (u *underway) End(name session.Name, used record.Usage) {
	u.mu.Lock()
	j := u.of[name]
	delete(u.of, name)
	u.mu.Unlock()
	if j == nil {
		return
	}
	j.timer.Stop()
	if spent := j.account.Spent(); used.Known && spent.Limited() {
		t := spent.Expected()
		promptUsed(&t, &used)
		t.Output = cmp.Or(used.Output, t.Output)
		spent.Use(t)
	}
	j.count.Release()
	j.work.End(time.Now())
}
