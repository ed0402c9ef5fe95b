package operator

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/warmpath/warmpath/daemon/admin/readiness"
)

// TestParts: a part of the workers has those in trouble first; counts are of all; a query without limits keeps all in order.
func TestParts(t *testing.T) {
	pools := func() []*PoolState {
		a, dead := &PoolState{Name: "a"}, &PoolState{Name: "dead", WhyNot: readiness.WhyEmpty}
		for i := range 6 {
			a.Workers = append(a.Workers, WorkerState{ID: fmt.Sprint("w", i), State: "up", Breaker: "closed", TTFT: .1, Models: []string{"m"}})
			dead.Workers = append(dead.Workers, WorkerState{ID: fmt.Sprint("d", i), State: "down", Breaker: "closed"})
		}
		a.Workers[1].TTFT = 2
		a.Workers[2].State = "full"
		a.Workers[3].State, a.Workers[3].Why = "down", "connection refused"
		a.Workers[4].Breaker = "half-open"
		a.Workers[5].State, a.Workers[5].Since = "down", time.Now()
		a.Workers[0].Labels = map[string]string{"role": "decode"}
		a.Summarize()
		dead.Summarize()
		return []*PoolState{a, dead}
	}
	f := func(query, want string) {
		t.Helper()
		app := fiber.New()
		app.Get("/", func(c *fiber.Ctx) error {
			all := pools()
			return inParts(c, 2, func(i int) *PoolState { return all[i] }, all)
		})
		resp, err := app.Test(httptest.NewRequest("GET", "/?"+query, nil))
		if err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode == 400 && want == "400" {
			return
		}
		var all []PoolState
		if err := json.NewDecoder(resp.Body).Decode(&all); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, p := range all {
			if p.Total != 6 || p.Sick != map[string]int{"a": 3, "dead": 6}[p.Name] {
				t.Errorf("%s: counts of %s: %+v", query, p.Name, p.Summary)
			}
			ids := []string{fmt.Sprint(p.Found)}
			for _, w := range p.Workers {
				ids = append(ids, w.ID)
			}
			got = append(got, strings.Join(ids, " "))
		}
		if s := strings.Join(got, ", "); s != want {
			t.Errorf("%s: %s; want %s", query, s, want)
		}
	}
	f("", "6 w0 w1 w2 w3 w4 w5, 6 d0 d1 d2 d3 d4 d5")
	f("limit=3", "6 w5 w3 w4, 6")
	f("limit=4&offset=2", "6 w4, 6 d0 d1 d2")
	f("limit=100&pool=a", "6 w5 w3 w4 w1 w2 w0, 0")
	f("limit=9223372036854775807&offset=11", "6 w0, 6")
	f("offset=50", "6, 6")
	f("limit=0", "6, 6")
	f("limit=1&with="+url.QueryEscape("dead d3")+"&with=a+w0", "6 w5 w0, 6 d3")
	f("find=REFUSED", "1 w3, 0")
	f("find=role%3Ddec", "1 w0, 0")
	f("find=dead&limit=1", "0, 6 d0")
	f("limit=x", "400")
	f("limit=-2", "400")
	f("offset=-1", "400")
	if n := pools()[0].Serving["m"]; fmt.Sprint(n) != "[{decode 1 1} { 5 3}]" {
		t.Errorf("serving: %v", n)
	}
}
