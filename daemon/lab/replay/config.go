package replay

import (
	"fmt"
	"io"
	"math"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Config gives what to replay, where, and how fast. URL, Models and File are
// required; the zero value of everything else is useful.
type Config struct {
	// URL is the daemon's address, such as http://127.0.0.1:8080; a path in it
	// is kept in front of /v1/completions.
	URL string

	// Models are the names to replay under, one complete run after the other.
	// A name usually stands for a pool, so that strategies are compared.
	Models []string

	// File is the trace, JSON lines: see [ReadTrace].
	File string

	// KeyFile holds the API key for a daemon that has [[keys]]; "" means none.
	KeyFile string

	// CAFile holds, in PEM, the authority that signed the certificate of a daemon
	// at an https URL; "" means those of the system.
	CAFile string

	// Speed is how many seconds of trace go into one of wall time; 0 means 20,
	// at which the half hour takes 90 s. Give the simulated workers the same.
	Speed float64

	// Spread has each request come up to so much later than its line's time, in
	// trace time, by chance that Seed gives; 0 means at its time. A trace whose
	// clock is coarse, as those of Mooncake with 3 s, otherwise has ten requests
	// come at the same moment.
	Spread time.Duration

	// Limit ends the trace after so many requests; 0 means all.
	Limit int

	// MaxInFlight bounds the requests that are open at once; 0 means 2,048, a file
	// descriptor each here and two in the daemon. A fleet that keeps up has some
	// hundred open; a run that reaches the bound reports it.
	MaxInFlight int

	// Grace is how long, in wall time, a run may go on after its last request
	// was due; 0 means 2 minutes. What is open then is counted as an error.
	Grace time.Duration

	// BytesPerToken is how many bytes of text make one token on the workers; 0
	// means 4, which is exact for the simulated worker. For another tokenizer
	// it is an estimate: compare the report's prompt tokens with the trace's.
	BytesPerToken int

	// Seed changes the text of every block, as the model's name does: a second
	// replay of a model with another seed finds nothing left by the first.
	Seed uint64

	// Progress is where the progress goes: a bar if it is a terminal, plain
	// lines otherwise; nil means nowhere.
	Progress io.Writer
}

// completed returns the Config with its defaults filled in, or what is wrong.
func (c Config) completed() (Config, error) {
	u, err := url.Parse(c.URL)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return c, fmt.Errorf("replay: url %q is not an address of a daemon; give one like http://127.0.0.1:8080", c.URL)
	}
	if len(c.Models) == 0 || slices.Contains(c.Models, "") {
		return c, fmt.Errorf("replay: no model named; give at least one that %s/v1/models lists", c.URL)
	}
	if math.IsNaN(c.Speed) || c.Speed < 0 || c.Speed > 1e6 {
		return c, fmt.Errorf("replay: speed %v is not between 0 and 1,000,000; 20 plays half an hour in 90 s", c.Speed)
	}
	for _, f := range []struct {
		name  string
		value int
	}{
		{"limit", c.Limit},
		{"max in flight", c.MaxInFlight},
		{"bytes per token", c.BytesPerToken},
		{"grace", int(c.Grace)},
		{"spread", int(c.Spread)},
	} {
		if f.value < 0 {
			return c, fmt.Errorf("replay: %s is negative; 0 takes the default", f.name)
		}
	}
	c.URL = strings.TrimRight(c.URL, "/")
	c.Speed = orDefault(c.Speed, 20)
	c.MaxInFlight = orDefault(c.MaxInFlight, 2048)
	c.Grace = orDefault(c.Grace, 2*time.Minute)
	c.BytesPerToken = orDefault(c.BytesPerToken, 4)
	return c, nil
}

func orDefault[T comparable](v, fallback T) T {
	var zero T
	if v == zero {
		return fallback
	}
	return v
}
