// A strategy that uses what Go programs use every day, as fmt, encoding/json, regexp and time: it places requests by
// rules in JSON, each a pattern of models, hours of the day and a label that workers must have.
package main

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/warmpath/warmpath/sdk"
)

// rule sends what fits it to the workers with a label.
type rule struct {
	Model   string `json:"model"` // a pattern
	From    int    `json:"from"`  // an hour, UTC
	Until   int    `json:"until"`
	Tier    string `json:"tier"`
	pattern *regexp.Regexp
}

type everyday struct{ rules []rule }

const byRule sdk.Reason = sdk.ReasonOwn

func (*everyday) Reasons() []string { return []string{"a rule fits"} }

// Configure reads the rules.
func (s *everyday) Configure(o *sdk.Options) error {
	text := o.String("rules", "[]")
	if err := json.NewDecoder(strings.NewReader(text)).Decode(&s.rules); err != nil {
		return fmt.Errorf("everyday: rules is no JSON; write [{\"model\": \"qwen.*\", \"tier\": \"batch\"}]: %w", err)
	}
	for i := range s.rules {
		pattern, err := regexp.Compile(s.rules[i].Model)
		if err != nil {
			return fmt.Errorf("everyday: rule %d: %w", i+1, err)
		}
		s.rules[i].pattern = pattern
	}
	return nil
}

func (s *everyday) Route(r *sdk.Request, workers []sdk.Worker) sdk.Decision {
	hour := time.Unix(0, r.Now).UTC().Hour()
	for i := range s.rules {
		rule := &s.rules[i]
		if !rule.pattern.MatchString(sdk.Model()) || rule.Until > 0 && (hour < rule.From || hour >= rule.Until) {
			continue
		}
		label := r.Labeled("tier", rule.Tier)
		for k := range workers {
			if workers[k].Labels&label != 0 {
				return sdk.To(k).Because(byRule)
			}
		}
		return r.Reject(503, fmt.Sprintf("no worker of the tier %q is up at %02d:00", rule.Tier, hour), 60)
	}
	best := 0
	for i := range workers {
		if workers[i].InFlight < workers[best].InFlight {
			best = i
		}
	}
	return sdk.To(best)
}

func init() { sdk.Register(new(everyday)) }

func main() {}
