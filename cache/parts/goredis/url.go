package goredis

import (
	"errors"
	"net/url"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

// Kind is the kind of servers behind a URL.
type Kind string

// The kinds.
const (
	Single   Kind = "single"
	Sentinel Kind = "sentinel"
	Cluster  Kind = "cluster"
)

// errURL contains nothing of the URL, which may hold a password.
var errURL = errors.New(`it is no URL of a Redis; write "redis://USER:PASSWORD@HOST:PORT/DB", ` +
	`"rediss://..." for TLS, "unix:///PATH", "redis://SENTINEL:PORT/DB?master_name=NAME&addr=SENTINEL2:PORT&` +
	`username=USER&password=PASSWORD" or ` +
	`"redis://USER:PASSWORD@NODE:PORT?cluster=true&addr=NODE2:PORT", with special characters percent-encoded`)

// Servers holds the options of a URL, in the form for its kind: the others are nil.
type Servers struct {
	Kind     Kind
	Single   *redis.Options
	Sentinel *redis.FailoverOptions
	Cluster  *redis.ClusterOptions
}

// Parse parses a URL in go-redis's form: ParseURL's, ParseFailoverURL's if it names a master, or ParseClusterURL's with
// cluster=true. An error does not show it.
func Parse(text string) (s Servers, err error) {
	u, err := url.Parse(text)
	if err != nil || !onePlace(u) {
		return s, errURL
	}
	q := u.Query()
	isCluster := false
	if text := q.Get("cluster"); text != "" {
		isCluster, err = strconv.ParseBool(text)
		if err != nil {
			return s, errURL
		}
	}
	q.Del("cluster")
	u.RawQuery = q.Encode()
	connections := 0
	switch {
	case q.Get("master_name") != "":
		s.Kind = Sentinel
		s.Sentinel, err = redis.ParseFailoverURL(u.String())
		if err == nil {
			connections = s.Sentinel.PoolSize
		}
	case isCluster:
		s.Kind = Cluster
		s.Cluster, err = redis.ParseClusterURL(u.String())
		if err == nil {
			connections = s.Cluster.PoolSize
		}
	default:
		s.Kind = Single
		s.Single, err = redis.ParseURL(u.String())
		if err == nil {
			connections = s.Single.PoolSize
		}
	}
	if err != nil || !PoolFits(connections) {
		return Servers{}, errURL
	}
	return s, nil
}

// onePlace reports whether a URL names one host, and one port if any. The library takes a list of hosts for one name,
// which no resolver can look up.
func onePlace(u *url.URL) bool {
	if u.Scheme == "unix" {
		return u.Path != ""
	}
	host, port := u.Hostname(), u.Port()
	if port != "" {
		n, err := strconv.Atoi(port)
		if err != nil || n < 1 || n > 65535 {
			return false
		}
	}
	return host != "" && !strings.ContainsAny(host, ", ;") && !strings.HasSuffix(u.Host, ":")
}

// CheckURL reports what is wrong with the URL of a Redis. The error does not show it.
func CheckURL(text string) error {
	_, err := Parse(text)
	return err
}

// Tagged returns a prefix with which all keys have one slot of a cluster, as the keys of a script must. Keys have it at
// any Redis: one with a plain URL may be in cluster mode with a single shard, as managed ones are.
func Tagged(prefix string) string {
	if strings.Contains(prefix, "{") {
		return prefix
	}
	word := strings.TrimRight(prefix, ":/")
	return "{" + word + "}" + prefix[len(word):]
}
