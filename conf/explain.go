package conf

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// ExplainLog selects the requests whose line in the access log lists the candidates. The zero value selects none.
type ExplainLog struct {
	Share  float64       `toml:"-"` // of all requests, from 0 to 1; "all" is 1
	Slower time.Duration `toml:"-"` // and those that take longer than this; 0 = no others
}

// UnmarshalTOML reads "off", "all", "slow:2s" or a share.
func (e *ExplainLog) UnmarshalTOML(v any) error {
	*e = ExplainLog{}
	switch v := v.(type) {
	case int64:
		return e.sample(float64(v))
	case float64:
		return e.sample(v)
	case string:
		return e.named(v)
	}
	return wrongExplainLog("it is neither a text nor a number")
}

func (e *ExplainLog) named(s string) error {
	switch least, slow := strings.CutPrefix(s, "slow:"); {
	case s == "off":
	case s == "all":
		e.Share = 1
	case slow:
		d, err := time.ParseDuration(least)
		if err != nil || d <= 0 {
			return wrongExplainLog(fmt.Sprintf("%.40q is no duration above zero", least))
		}
		e.Slower = d
	default:
		return wrongExplainLog(fmt.Sprintf("%.40q is unknown", s))
	}
	return nil
}

func (e *ExplainLog) sample(share float64) error {
	if !(share >= 0 && share <= 1) { // NaN too
		return wrongExplainLog(fmt.Sprintf("%v is out of range", share))
	}
	e.Share = share
	return nil
}

func wrongExplainLog(what string) error {
	return &fault{what,
		`write "off", "all", "slow:2s" for those that take longer, or a share of requests from 0 to 1, as 0.01`}
}

// String returns the value as the file has it.
func (e ExplainLog) String() string {
	switch {
	case e.Slower > 0:
		return "slow:" + e.Slower.String()
	case e.Share >= 1:
		return "all"
	case e.Share > 0:
		return strconv.FormatFloat(e.Share, 'g', -1, 64)
	}
	return "off"
}
