package operator

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/warmpath/warmpath/daemon/admin/readiness"
	"github.com/warmpath/warmpath/daemon/admin/register"
)

// desk is where workers register.
type desk struct {
	all     *register.Register
	process register.Process
	pools   func() []*readiness.Pool
}

// whyStatus maps the reasons of refusals to statuses.
var whyStatus = map[register.Why]int{
	register.Wrong:    fiber.StatusBadRequest,
	register.Unknown:  fiber.StatusNotFound,
	register.Conflict: fiber.StatusConflict,
	register.Full:     fiber.StatusInsufficientStorage,
	register.Broken:   fiber.StatusInternalServerError,
	register.Held:     fiber.StatusServiceUnavailable,
}

// answerRefusal answers with a refusal of the register.
func answerRefusal(c *fiber.Ctx, err error) error {
	if r, ok := errors.AsType[*register.Refusal](err); ok {
		return c.Status(whyStatus[r.Why]).JSON(fiber.Map{"error": r.Text})
	}
	return c.Status(fiber.StatusBadRequest).JSON(fiber.Map{"error": err.Error()})
}

// PoolWorker is a worker of a pool with where it comes from.
type PoolWorker struct {
	Pool    string    `json:"pool"`
	ID      string    `json:"id"`
	URL     string    `json:"url"` // without a password
	Origin  string    `json:"origin"`
	State   string    `json:"state"` // "" = its first health check is yet to come
	Role    string    `json:"role,omitempty"`
	TTL     float64   `json:"ttl_seconds,omitempty"` // 0 = until it is removed
	Ends    time.Time `json:"ends,omitzero"`         // of its registration, unless it is renewed
	Warning string    `json:"warning,omitempty"`

	load int // its requests
	up   bool
}

// deregistered is the answer to the end of a registration.
type deregistered struct {
	Removed string `json:"removed"`
}

// Bounds of a ttl, and what is wrong with one outside of them.
const minTTL, maxTTL = time.Second, 7 * 24 * time.Hour

var errTTL = fmt.Errorf("ttl: write a time from %v to %v, as \"30s\", or a number of seconds; leave it out for a "+
	"worker that stays until it is removed", minTTL, maxTTL)

// takeTTL takes the ttl out of the keys of a registration.
func takeTTL(keys map[string]any) (ttl time.Duration, err error) {
	switch v := keys["ttl"].(type) {
	case nil:
		return 0, nil
	case float64:
		ttl = time.Duration(min(max(v, 0), maxTTL.Seconds()+1) * float64(time.Second))
	case string:
		ttl, err = time.ParseDuration(v)
	}
	if err != nil || ttl < minTTL || ttl > maxTTL {
		return 0, errTTL
	}
	delete(keys, "ttl")
	return ttl, nil
}

// addRegister adds the routes of the register. They need a token on loopback too: a worker gets the prompts of clients,
// and the workers' key. The forms at the root are those of SGLang's router up to 0.2.1, of slime's own router
// (/add_worker, /remove_worker, /list_workers) and of SGLang's gateway 0.3 (/workers).
func addRegister(app *fiber.App, d *desk, token *bearer) {
	tokenOnly := func(c *fiber.Ctx) error {
		if !token.exists() {
			return c.Status(fiber.StatusForbidden).JSON(fiber.Map{"error": "workers register with a token only, on loopback " +
				"too; write one of 8 characters or more into a file, name it in server.admin_token_file, and restart"})
		}
		return c.Next()
	}
	const path = "/api/v1/pools/:pool/workers"
	app.Post(path, tokenOnly, func(c *fiber.Ctx) error {
		w, err := d.enter(strings.Clone(c.Params("pool")), c.Body(), nil)
		if err != nil {
			return answerRefusal(c, err)
		}
		return c.JSON(w)
	})
	app.Get(path, func(c *fiber.Ctx) error {
		all, known := d.poolWorkers(c.Params("pool"))
		if !known {
			return c.Status(fiber.StatusNotFound).JSON(fiber.Map{"error": "there is no such pool; /api/v1/pools lists them"})
		}
		return c.JSON(all)
	})
	app.Delete(path+"/:worker", tokenOnly, func(c *fiber.Ctx) error {
		id := strings.Clone(workerParam(c))
		if err := d.all.Remove(d.process, strings.Clone(c.Params("pool")), id); err != nil {
			return answerRefusal(c, err)
		}
		return c.JSON(deregistered{Removed: id})
	})
	app.Post("/workers", tokenOnly, d.sglangAdd)
	app.Get("/workers", d.sglangList)
	app.Delete("/workers/:worker", tokenOnly, func(c *fiber.Ctx) error { return d.sglangRemove(c, workerParam(c)) })
	app.Post("/add_worker", tokenOnly, d.sglangAdd)
	app.Post("/remove_worker", tokenOnly, func(c *fiber.Ctx) error { return d.sglangRemove(c, sglangURL(c)) })
	app.Get("/list_workers", func(c *fiber.Ctx) error {
		urls := []string{}
		all, _ := d.poolWorkers("")
		for i := range all {
			urls = append(urls, all[i].URL)
		}
		return c.JSON(sglangURLs{URLs: urls})
	})
}

// enter registers the worker of a body, of which prepare changes the keys first.
func (d *desk) enter(pool string, body []byte, prepare func(keys map[string]any)) (w PoolWorker, err error) {
	var keys map[string]any
	if err := json.Unmarshal(body, &keys); err != nil || keys == nil {
		return w, errors.New(`send {"url": "http://HOST:PORT", "id": "...", "ttl": "30s"}, with any of the keys of ` +
			`[[pools.workers]]`)
	}
	if prepare != nil {
		prepare(keys)
	}
	ttl, err := takeTTL(keys)
	if err != nil {
		return w, err
	}
	e, err := d.all.Add(d.process, pool, keys, ttl)
	if err != nil {
		return w, err
	}
	all, _ := d.poolWorkers(pool)
	if i := slices.IndexFunc(all, func(w PoolWorker) bool { return w.ID == e.Worker.ID }); i >= 0 {
		w = all[i]
	}
	if !d.all.Kept() {
		w.Warning = "server.state_file is not set: a restart or an upgrade forgets the registration until it is sent again"
	}
	return w, nil
}

// poolWorkers returns the workers of a pool, "" for all pools.
func (d *desk) poolWorkers(pool string) (list []PoolWorker, known bool) {
	entries, found := d.all.Entries(), d.process.Found()
	list = []PoolWorker{}
	for _, p := range d.pools() {
		if pool != "" && p.Name != pool {
			continue
		}
		known = true
		used := map[string]int{} // places in list
		add := func(w PoolWorker, url string) {
			w.Pool, w.URL = p.Name, plainURL(url)
			if p.Origin != nil {
				w.Origin = p.Origin(url)
			}
			for i := range entries {
				if e := &entries[i]; e.Pool == p.Name && e.Worker.ID == w.ID && e.Worker.URL == url {
					w.TTL, w.Ends = e.TTL.Seconds(), e.Ends
				}
			}
			used[w.ID] = len(list)
			list = append(list, w)
		}
		for _, st := range p.Workers.Stats(time.Now()) {
			if i, is := used[st.Endpoint]; is { // another rank
				list[i].load += st.InFlight
				continue
			}
			add(PoolWorker{ID: st.Endpoint, State: st.State.String(), Role: st.Labels["role"], load: st.InFlight, up: st.Up},
				st.URL)
		}
		for _, w := range found[p.Name] {
			if _, is := used[w.ID]; !is {
				role, _ := strings.CutSuffix(w.RoleOf(), "both") // that is none
				add(PoolWorker{ID: w.ID, State: Outside, Role: role}, w.URL)
			}
		}
	}
	return list, known
}

// plainURL returns a worker's URL without user and password.
func plainURL(s string) string {
	u, err := url.Parse(s)
	if err != nil {
		return ""
	}
	u.User = nil
	return u.String()
}

// sglangURLs is the answer to GET /list_workers.
type sglangURLs struct {
	URLs []string `json:"urls"`
}

// sglangURL returns the URL of a worker in the forms of SGLang's and slime's routers: in the query, or in the body.
func sglangURL(c *fiber.Ctx) string {
	var body struct {
		URL    string `json:"url"`
		Worker string `json:"worker_url"`
	}
	_ = json.Unmarshal(c.Body(), &body)
	return cmp.Or(copied(c, "url"), copied(c, "worker_url"), body.URL, body.Worker)
}

// sglangIgnored are keys of SGLang's POST /workers without an effect here: the pool in the file has the workers' key,
// the health checks and the models, and the worker's pages have the rest.
var sglangIgnored = []string{"api_key", "model_id", "models", "priority", "bootstrap_port", "runtime", "runtime_type",
	"connection_mode", "tokenizer_path", "reasoning_parser", "tool_parser", "chat_template", "health",
	"health_check_timeout_secs", "health_check_interval_secs", "health_success_threshold", "health_failure_threshold",
	"max_connection_attempts", "dp_aware", "disable_health_check", "worker_url", "pool"}

// sglangDone is the answer to a change.
type sglangDone struct {
	Status   string `json:"status"`
	ID       string `json:"worker_id"`
	URL      string `json:"url"`
	Location string `json:"location,omitempty"`
	Message  string `json:"message"`
}

// sglangAdd answers POST /add_worker?url= and POST /workers with a body.
func (d *desk) sglangAdd(c *fiber.Ctx) error {
	body := c.Body()
	if len(body) == 0 {
		body = []byte("{}")
	}
	var ask struct{ Pool string }
	_ = json.Unmarshal(body, &ask)
	pool, err := d.solePool(copied(c, "pool"), ask.Pool)
	var ignored []string
	var w PoolWorker
	if err == nil {
		w, err = d.enter(pool, body, func(keys map[string]any) {
			keys["url"] = sglangURL(c)
			if role, ok := keys["worker_type"].(string); ok && role != "regular" {
				keys["role"] = role
			}
			delete(keys, "worker_type")
			for _, name := range sglangIgnored {
				if _, ok := keys[name]; ok {
					ignored = append(ignored, name)
					delete(keys, name)
				}
			}
		})
	}
	if err != nil {
		return answerRefusal(c, err)
	}
	at := "/workers/" + w.ID
	c.Set(fiber.HeaderLocation, at)
	said := "Successfully added worker: " + w.URL
	if len(ignored) > 0 {
		said += "; without effect here: " + strings.Join(ignored, ", ")
	}
	return c.JSON(sglangDone{Status: "success", ID: w.ID, URL: w.URL, Location: at, Message: said})
}

// solePool returns the pool that a request names, or the only one.
func (d *desk) solePool(names ...string) (string, error) {
	if name := cmp.Or(names...); name != "" {
		return name, nil
	}
	var all []string
	for _, p := range d.pools() {
		all = append(all, p.Name)
	}
	if len(all) == 1 {
		return all[0], nil
	}
	return "", fmt.Errorf("there are several pools: say which by ?pool=NAME; there are %s", strings.Join(all, ", "))
}

// sglangRemove answers DELETE /workers/ID and POST /remove_worker?url=. SGLang's gateway takes an id, or a URL before
// 0.3.
func (d *desk) sglangRemove(c *fiber.Ctx, name string) error {
	all, _ := d.poolWorkers(copied(c, "pool"))
	i := slices.IndexFunc(all, func(w PoolWorker) bool { return w.ID == name || w.URL == strings.TrimSuffix(name, "/") })
	if i < 0 {
		return c.Status(fiber.StatusNotFound).JSON(fiber.Map{"error": "there is no such worker; GET /workers lists them"})
	}
	if err := d.all.Remove(d.process, all[i].Pool, all[i].ID); err != nil {
		return answerRefusal(c, err)
	}
	return c.JSON(sglangDone{Status: "success", ID: all[i].ID, URL: all[i].URL,
		Message: "Successfully removed worker: " + all[i].URL})
}

// sglangWorker is a worker in the answer to GET /workers.
type sglangWorker struct {
	ID      string `json:"id"`
	URL     string `json:"url"`
	Pool    string `json:"pool"`
	Type    string `json:"worker_type"`
	Healthy bool   `json:"is_healthy"`
	Load    int    `json:"load"`
	Mode    string `json:"connection_mode"`
}

// sglangWorkers is the answer to GET /workers.
type sglangWorkers struct {
	Workers []sglangWorker `json:"workers"`
	Total   int            `json:"total"`
}

func (d *desk) sglangList(c *fiber.Ctx) error {
	list := sglangWorkers{Workers: []sglangWorker{}}
	all, _ := d.poolWorkers(copied(c, "pool"))
	for i := range all {
		w := &all[i]
		one := sglangWorker{ID: w.ID, URL: w.URL, Pool: w.Pool, Healthy: w.up, Load: w.load, Mode: "http"}
		one.Type = cmp.Or(w.Role, "regular")
		list.Workers = append(list.Workers, one)
	}
	list.Total = len(list.Workers)
	return c.JSON(list)
}
