package bugs

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	"github.com/warmpath/warmpath/testdata/rig"
	"github.com/warmpath/warmpath/testdata/rig/wire"
	"github.com/warmpath/warmpath/testdata/trials/engine"
)

// One of four workers refuses at once what the others answer in 0.1 s. It looks idle, and must not draw the traffic.
var refusals = []wallCase{
	{"a-worker-that-answers-401-draws-no-traffic", refusing(status(401))},
	{"a-worker-that-answers-403-draws-no-traffic", refusing(status(403))},
	{"a-worker-that-answers-404-draws-no-traffic", refusing(status(404))},
	{"a-worker-that-answers-422-draws-no-traffic", refusing(status(422))},
	{"a-worker-that-answers-405-draws-no-traffic", refusing(status(405))},
	{"a-worker-that-answers-with-a-page-draws-no-traffic", refusing(func(c *wire.Call) bool {
		return c.Plain(200, "text/html; charset=utf-8", "<!DOCTYPE html><html><body>Sign in</body></html>")
	})},
	{"a-worker-that-answers-with-a-redirect-draws-no-traffic", refusing(func(c *wire.Call) bool {
		return engine.Refuse(c, 302, "elsewhere", "Location: https://login.example.com/")
	})},
	{"a-worker-that-answers-nothing-draws-no-traffic", refusing(plain(""))},
	{"a-worker-that-answers-null-draws-no-traffic", refusing(plain("null"))},
	{"a-worker-that-answers-an-empty-object-draws-no-traffic", refusing(plain("{}"))},
	{"a-worker-that-answers-an-empty-object-in-chunks-draws-none", refusing(func(c *wire.Call) bool {
		_, err := c.Write([]byte("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n" +
			"2\r\n{}\r\n0\r\n\r\n"))
		return err == nil
	})},
	{"a-worker-that-answers-500-draws-no-traffic", refusing(status(500))},
	{"a-worker-that-refuses-embeddings-alone-draws-none", refusingEmbeddings},
	{"a-worker-that-refuses-tokenize-alone-draws-none", refusingTokenize},
	{"a-worker-that-refuses-is-named-by-a-warning", warnsOfRefusal},
	{"a-bad-request-that-all-refuse-sets-nobody-aside", refusedByAll},
	{"a-path-that-no-worker-has-moves-no-chat", movesNoChat("GET", "/v1/files", "")},
	{"a-post-that-no-worker-takes-moves-no-chat", movesNoChat("POST", "/v1/moderations", `{"input":"x"}`)},
	{"a-kind-that-no-worker-has-moves-no-chat", movesNoChat("POST", "/v1/embeddings", `{"model":"sim","input":"x"}`)},
	{"a-chat-that-all-workers-refuse-moves-no-chat", movesNoChat("POST", chatPath, chat("bad"))},
	{"made-up-paths-move-no-chat", movesNoChat("DELETE", "/v1/%d/%d", "")},
	{"a-refused-prompt-is-not-taken-for-cached", refusedPrompt},
	{"a-401-to-the-routers-key-is-the-routers-fault", routersKey},
}

// plain answers 200 with a text.
func plain(text string) func(*wire.Call) bool {
	return func(c *wire.Call) bool { return c.Plain(200, "application/json", text) }
}

func status(code int) func(*wire.Call) bool {
	return func(c *wire.Call) bool { return engine.Refuse(c, code, "no") }
}

// refusing sends 200 requests of 8 clients. No client may get the refusal, and few requests may meet it: five, and one
// for each second that it takes, as the worker is tried again from time to time. A quarter would be fair.
func refusing(no func(*wire.Call) bool) func(*lab) (string, bool) {
	return func(l *lab) (string, bool) {
		var met atomic.Int64
		counted := func(c *wire.Call) bool { met.Add(1); return no(c) }
		r := l.router(append(l.engines(1, counted), l.engines(3, slowly)...)...).awaitUp(4)
		began := time.Now()
		all := clients(8, 25, func(k, i int) wire.Answer {
			if i == 0 { // on a starved machine, requests that come at once are chosen for before one of them is sent
				time.Sleep(time.Duration(k) * 20 * time.Millisecond)
			}
			return r.chat(fmt.Sprintf("%d %d question", k, i))
		})
		bad := unlike(all, "hello")
		return fmt.Sprintf("%d of 200 refused, %d met it", bad, met.Load()), bad == 0 && met.Load() <= 5+int64(time.Since(began).Seconds())
	}
}

// awaitUp waits until so many workers are up. On a busy machine /ready is good before.
func (r *router) awaitUp(n int) *router {
	r.lab.t.Helper()
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		page := string(wire.Once(r.Admin, wire.Request("GET", "/metrics", "", "Host: "+r.Admin)).Body)
		if len(regexp.MustCompile(`(?m)^warmpath_worker_up\{.* 1$`).FindAllString(page, -1)) == n {
			return r
		}
		if time.Now().After(end) {
			r.lab.t.Fatalf("%d workers are not up after 10 s: %s", n, page)
		}
	}
}

// slowly answers in 0.1 s.
func slowly(c *wire.Call) bool {
	if c.Wait(100 * time.Millisecond) {
		return false
	}
	return engine.Echo(c)
}

// unlike counts the answers that are not served or have not the word.
func unlike(all []wire.Answer, word string) (n int) {
	for _, a := range all {
		if !served(a) || !strings.Contains(string(a.Body), word) {
			n++
		}
	}
	return n
}

func refusingEmbeddings(l *lab) (string, bool) {
	chats, embeddings := refusingAlone(l, "/v1/embeddings", `{"model":"sim","input":"%d %d text"}`)
	return fmt.Sprintf("%d of 100 embeddings refused, %d of 100 chats", embeddings, chats), embeddings <= 10 && chats == 0
}

func refusingTokenize(l *lab) (string, bool) {
	chats, others := refusingAlone(l, "/tokenize", `{"model":"sim","prompt":"%d %d text"}`)
	return fmt.Sprintf("%d of 100 calls of /tokenize refused, %d of 100 chats", others, chats), others <= 10 && chats == 0
}

// refusingAlone has one of four workers refuse a path alone, and sends 100 requests to it and 100 chats.
func refusingAlone(l *lab, path, body string) (chats, others int) {
	no := func(c *wire.Call) bool {
		if c.Path == path {
			return engine.Refuse(c, 404, "Not Found")
		}
		return slowly(c)
	}
	r := l.router(append(l.engines(1, no), l.engines(3, slowly)...)...).awaitUp(4)
	all := clients(8, 25, func(k, i int) wire.Answer {
		if k%2 == 0 {
			return r.chat(fmt.Sprintf("%d %d question", k, i))
		}
		return r.post(path, fmt.Sprintf(body, k, i))
	})
	for k := range 8 {
		n := refused(all[k*25 : k*25+25])
		if k%2 == 0 {
			chats += n
		} else {
			others += n
		}
	}
	return chats, others
}

func warnsOfRefusal(l *lab) (string, bool) {
	r := l.router(append(l.engines(1, status(401)), l.engines(3, slowly)...)...)
	clients(8, 90, func(k, i int) wire.Answer { return r.chat(fmt.Sprintf("%d %d question", k, i)) })
	n := r.warned("level=WARN", "w0", "401")
	return fmt.Sprintf("%d warnings that name the worker and its 401", n), n >= 1 && n <= 3
}

// refusedByAll is a control: a request that nobody accepts shows nothing about a worker.
func refusedByAll(l *lab) (string, bool) {
	var asked [4]atomic.Int64
	var engines []*engine.Engine
	for n := range asked {
		engines = append(engines, l.engines(1, func(c *wire.Call) bool {
			if strings.Contains(string(c.Text), "bad") {
				return engine.Refuse(c, 422, "this field is no number")
			}
			asked[n].Add(1)
			return slowly(c)
		})...)
	}
	r := l.router(engines...)
	clients(4, 10, func(k, i int) wire.Answer { return r.chat(fmt.Sprintf("%d %d bad", k, i)) })
	good := clients(8, 10, func(k, i int) wire.Answer { return r.chat(fmt.Sprintf("%d %d good", k, i)) })
	idle := 0
	for n := range asked {
		if asked[n].Load() < 8 {
			idle++
		}
	}
	return fmt.Sprintf("after 40 bad requests %d of 80 good ones refused, %d of 4 workers hardly used", refused(good), idle),
		refused(good) == 0 && idle == 0
}

// movesNoChat has a client send what every worker refuses, 20 times a second, beside 8 chats whose beginning each has
// at one worker. No chat may leave its worker.
func movesNoChat(method, path, body string) func(*lab) (string, bool) {
	return func(l *lab) (string, bool) {
		r := l.router(l.engines(4, func(c *wire.Call) bool {
			if c.Path != chatPath || strings.Contains(string(c.Text), "bad") {
				return engine.Refuse(c, 404, "no")
			}
			return engine.Echo(c)
		})...)
		const chats, turns = 8, 10
		var moved, taken, at atomic.Int64
		go every(50*time.Millisecond, 100, func(i int) wire.Answer {
			to := path
			if strings.Contains(path, "%d") {
				to = fmt.Sprintf(path, i, i)
			}
			a := wire.Once(r.Addr, wire.Request(method, to, body, "Content-Type: application/json"))
			if served(a) {
				taken.Add(1)
			}
			return a
		})
		all := clients(chats, 1, func(k, _ int) (a wire.Answer) {
			text, home := strings.Repeat(fmt.Sprintf("words of chat %d. ", k), 300), ""
			for range turns {
				a = r.post(chatPath, chat(text), "X-Warmpath-Explain: 1")
				if now := field(a, "x-warmpath-worker"); home == "" {
					home = now
				} else if now != home {
					moved.Add(1)
				}
				at.Add(1)
				time.Sleep(250 * time.Millisecond)
			}
			return a
		})
		return fmt.Sprintf("%d of %d turns left their worker, %d odd requests were taken", moved.Load(), at.Load(), taken.Load()),
			moved.Load() == 0 && taken.Load() == 0 && refused(all) == 0
	}
}

// refusedPrompt looks at what the decision says of the worker that has refused the same prompt before.
func refusedPrompt(l *lab) (string, bool) {
	var on atomic.Bool
	on.Store(true)
	r := l.router(l.engines(2, func(c *wire.Call) bool {
		if on.Load() {
			return engine.Refuse(c, 422, "no")
		}
		return engine.Echo(c)
	})...)
	long := strings.Repeat("the same long text ", 100)
	for range 4 {
		r.chat(long)
	}
	on.Store(false)
	a := r.post(chatPath, chat(long), "X-Warmpath-Explain: 1")
	held := field(a, "x-warmpath-matched-blocks")
	return fmt.Sprintf("%s blocks of a prompt taken for cached that was only refused", held), served(a) && held == "0"
}

// field is a field of an answer's head.
func field(a wire.Answer, name string) string {
	for line := range strings.SplitSeq(a.Text, "\r\n") {
		if n, value, ok := strings.Cut(line, ":"); ok && n == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

func routersKey(l *lab) (string, bool) {
	file := filepath.Join(l.dir, "worker.key")
	if err := os.WriteFile(file, []byte("an-old-key\n"), 0o600); err != nil {
		l.t.Fatal(err)
	}
	r := l.routerWith(rig.Router{Pool: fmt.Sprintf("worker_key_file = %q\n", file)}, l.engines(2, status(401))...)
	all := clients(1, 5, func(_, i int) wire.Answer { return r.chat(fmt.Sprintf("%d", i)) })
	told := 0
	for _, a := range all {
		if a.Status == 401 {
			told++
		}
	}
	warned := r.warned("level=WARN", "worker_key_file")
	return fmt.Sprintf("%d of 5 clients told 401; %d warnings name worker_key_file", told, warned), told == 0 && warned >= 1
}
