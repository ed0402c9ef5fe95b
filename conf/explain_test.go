package conf

import (
	"strings"
	"testing"
	"time"
)

func TestExplainLog(t *testing.T) {
	f := func(value string, want ExplainLog) {
		t.Helper()
		doc := "[server]\nexplain_log = " + value + "\n[[pools]]\nworkers = [{url = 'http://a'}]"
		c, err := Parse([]byte(doc), "x.toml")
		if err != nil {
			t.Errorf("%s: %v", value, err)
		} else if got := c.Server.ExplainLog; got != want {
			t.Errorf("%s: got %+v; want %+v", value, got, want)
		}
	}
	f(`"off"`, ExplainLog{})
	f(`"all"`, ExplainLog{Share: 1})
	f(`"slow:2s"`, ExplainLog{Slower: 2 * time.Second})
	f(`"slow:250ms"`, ExplainLog{Slower: 250 * time.Millisecond})
	f("0.01", ExplainLog{Share: 0.01})
	f("0", ExplainLog{})
	f("1", ExplainLog{Share: 1})
	f("1.0", ExplainLog{Share: 1})
}

func TestBadExplainLog(t *testing.T) {
	const remedy = `; write "off", "all", "slow:2s" for those that take longer, or a share of requests from 0 to 1, as 0.01`
	f := func(value, want string) {
		t.Helper()
		_, err := Parse([]byte("[server]\nexplain_log = "+value+"\n[[pools]]\nworkers = [{url = 'http://a'}]"), "x.toml")
		if err == nil || err.Error() != "conf: x.toml:2: server.explain_log: "+want+remedy {
			t.Errorf("%s: %v", value, err)
		}
	}
	f(`"on"`, `"on" is unknown`)
	f(`""`, `"" is unknown`)
	f(`"slow"`, `"slow" is unknown`)
	f(`"slow:"`, `"" is no duration above zero`)
	f(`"slow:2"`, `"2" is no duration above zero`)
	f(`"slow:0s"`, `"0s" is no duration above zero`)
	f(`"slow:-1s"`, `"-1s" is no duration above zero`)
	f("1.5", "1.5 is out of range")
	f("-1", "-1 is out of range")
	f("nan", "NaN is out of range")
	f("true", "it is neither a text nor a number")
	f("['all']", "it is neither a text nor a number")
	f("{ share = 1 }", "it is neither a text nor a number")
	f(`"`+strings.Repeat("x", 50)+`"`, `"`+strings.Repeat("x", 40)+`" is unknown`)
}
