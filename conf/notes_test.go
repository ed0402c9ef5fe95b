package conf

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/certtest"
)

// TestNotes: each is hardly meant, and nothing else is noted.
func TestNotes(t *testing.T) {
	const workers = "workers = [{url = 'http://a'}]\n"
	const pair = "disaggregation = {connector = 'nixl'}\nworkers = [{url = 'http://a', role = 'prefill', labels = {for = 'p', in = 'x'}}, " +
		"{url = 'http://b', role = 'decode', labels = {in = 'x'}}]\n"
	const key = "[[keys]]\nname = 'k'\nenv = 'WARMPATH_TEST_KEY'\n"
	for _, c := range []struct{ name, text, want string }{
		{"nothing", "[[pools]]\nkv_events = 'auto'\nstrategy = 'kvaware'\n" + workers, ""},
		{"a disk without a listener", "[kv_cache]\nspill_dir = '/tmp'\n[[pools]]\n" + workers, "2 kv_cache.spill_dir"},
		{"a disk", "[kv_cache]\nresp = ':6380'\nspill_dir = '/tmp/is/made'\n[[pools]]\n" + workers, ""},
		{"an L2 that is off", "[kv_cache]\nresp = ':6380'\n[kv_cache.l2]\nbackend = 'redis'\nurl = 'redis://a:6379'\n[[pools]]\n" + workers,
			"3 kv_cache.l2"},
		{"members of a pool that is off", "[kv_cache.l2]\nmembers = ['a:6380']\n[[pools]]\n" + workers, "1 kv_cache.l2"},
		{"events for nobody", "[[pools]]\nstrategy = 'prefixaware'\nkv_events = 'auto'\n" + workers, "3 pools[0].kv_events"},
		{"events of one worker for nobody", "[[pools]]\nstrategy = 'session'\nworkers = [{url = 'http://a', kv_events = 'tcp://*:5557'}]\n",
			"3 pools[0].workers[0].kv_events"},
		{"events for a canary", "[[pools]]\nstrategy = 'prefixaware'\nkv_events = 'auto'\ncanary = [{strategy = 'kvaware', percent = 5}]\n" +
			"workers = [{url = 'http://a'}, {url = 'http://b'}]\n", ""},
		{"no reply", "[lmcache]\npull = ':1'\n[[pools]]\n" + workers, "2 lmcache.pull"},
		{"an authority for nobody", "[[pools]]\ntls_ca_file = 'CA'\n" + workers, "2 pools[0].tls_ca_file"},
		{"an authority", "[[pools]]\ntls_ca_file = 'CA'\nworkers = [{url = 'https://a'}]\n", ""},
		{"a key for nothing", "[[keys]]\nname = 'k'\nenv = 'WARMPATH_TEST_KEY'\nmodels = ['b', 'a/*', 'c/d']\n[[pools]]\nmodels = ['a/x', 'c/*']\n" +
			workers, "4 keys[0].models"},
		{"a key for workers that are not there", key + "workers = 'for=a,tier=x'\n[[pools]]\nworkers = [{url = 'http://a', " +
			"labels = {for = 'a'}}, {url = 'http://b', labels = {tier = 'x'}}]\n", "4 keys[0].workers"},
		{"a key for workers of one pool", key + "workers = 'for=a'\n[[pools]]\nmodels = ['m']\nworkers = [{url = 'http://a', " +
			"labels = {for = 'a', tier = 'x'}}]\n[[pools]]\nmodels = ['n']\nworkers = [{url = 'http://b'}]\n", "4 keys[0].workers"},
		{"a key for a model and its workers", key + "models = ['m']\nworkers = 'for=a'\n[[pools]]\nmodels = ['m']\n" +
			"workers = [{url = 'http://a', labels = {for = 'a'}}]\n[[pools]]\nmodels = ['n']\nworkers = [{url = 'http://b'}]\n", "10 pools[1].models"},
		{"a key for workers by discovery", key + "workers = 'for=a'\n[[pools]]\nworkers_dns = 'localhost:9'\n", ""},
		{"a key for one role", key + "workers = 'role=decode'\n[[pools]]\n" + pair, "4 keys[0].workers"},
		{"a key for prefillers", key + "workers = 'for=p'\n[[pools]]\n" + pair, "4 keys[0].workers"},
		{"a key for prefillers that answer", key + "workers = 'for=p'\n[[pools]]\n" +
			strings.Replace(pair, "'nixl'", "'nixl', prefillers_answer = true", 1), ""},
		{"a key for both", key + "workers = 'in=x'\n[[pools]]\n" + pair, ""},
		{"a role that is no role", "[[pools]]\n" + strings.Replace(pair, "for = 'p'", "role = 'prefil'", 1),
			"3 pools[0].workers[1].labels, 3 pools[0].workers[0].labels"},
		{"two roles", "[[pools]]\n" + strings.Replace(pair, "for = 'p'", "role = 'decode'", 1),
			"3 pools[0].workers[1].labels, 3 pools[0].workers[0].labels"},
		{"no connector", "[[pools]]\ndisaggregation = {threshold = 9}\n" + workers, "2 pools[0].disaggregation"},
		{"prefillers that drain", "[[pools]]\n" + strings.Replace(pair, "role = 'prefill',", "role = 'prefill', drain = true,", 1),
			"2 pools[0].disaggregation, 3 pools[0].workers[0].labels, 3 pools[0].workers[1].labels"},
		{"mates", "[[pools]]\n" + strings.Replace(pair, "'nixl'", "'nixl', same = ['in'], near = 'for'", 1), ""},
		{"no mate", "[[pools]]\n" + strings.Replace(pair, "'nixl'", "'nixl', same = ['for']", 1), "2 pools[0].disaggregation.same"},
		{"a label of nobody", "[[pools]]\n" + strings.Replace(pair, "'nixl'", "'nixl', near = 'zone'", 1), "2 pools[0].disaggregation.near"},
		{"a key for all", "[[keys]]\nname = 'k'\nenv = 'WARMPATH_TEST_KEY'\n[[pools]]\nmodels = ['a/x']\n" + workers, ""},
	} {
		t.Setenv("WARMPATH_TEST_KEY", "sk-0123456789")
		ca := certtest.New(t, t.TempDir(), "ca", "ca").Cert
		wantNotes(t, c.name, strings.Replace(c.text, "CA", ca, 1), c.want)
	}
}

func wantNotes(t *testing.T, name, text, want string) {
	t.Helper()
	c, err := Parse([]byte(text), "x.toml")
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	var got []string
	for _, p := range Notes(c) {
		got = append(got, fmt.Sprintf("%d %s", p.Line, p.Key))
	}
	if s := strings.Join(got, ", "); s != want {
		t.Errorf("%s: got %q; want %q", name, s, want)
	}
}

// TestNotedCertificates: one outside its dates is no error, since a restart with it must not fail, and is noted.
func TestNotedCertificates(t *testing.T) {
	const day = 24 * time.Hour
	for want, dates := range map[string][2]time.Duration{
		"":                  {-day, 30 * day},
		"has expired on":    {-2 * day, -day},
		"is not valid":      {day, 30 * day},
		" ends on ":         {-day, 13 * day},
		"has expired on 20": {-9 * day, -time.Minute},
	} {
		pair := certtest.Dated(t, t.TempDir(), "c", "c", certtest.Dates{dates[0], dates[1]})
		for _, table := range []string{"server", "kv_cache"} {
			text := fmt.Sprintf("kv_cache.resp = ':6380'\n%s.tls_cert_file = %q\n%s.tls_key_file = %q\n[[pools]]\nworkers = [{url = 'http://a'}]\n",
				table, filepath.ToSlash(pair.Cert), table, pair.Key)
			c, err := Parse([]byte(text), "x.toml")
			if err != nil {
				t.Fatal(err)
			}
			notes := Notes(c)
			if want == "" && len(notes) > 0 {
				t.Errorf("%s: %v", table, notes)
			}
			if want != "" && (len(notes) != 1 || notes[0].Line != 2 || !strings.Contains(notes[0].What, want)) {
				t.Errorf("%s: %v; want %q", table, notes, want)
			}
		}
	}
}

// TestAKeyIsNoToken: one secret for a client and for the operator is refused, as two equal keys are.
func TestAKeyIsNoToken(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	write(t, file, "one-secret-for-both\n")
	_, err := Parse([]byte("[server]\nadmin_token_file = '"+file+"'\n[[keys]]\nname = 'a'\nfile = '"+file+
		"'\n[[pools]]\nworkers = [{url = 'http://a'}]\n"), "x.toml")
	if err == nil || !strings.Contains(err.Error(), "x.toml:5: keys[0].file: it is the same key as that of server.admin_token_file") {
		t.Errorf("%v", err)
	}
}
