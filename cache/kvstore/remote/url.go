package remote

import (
	"errors"
	"net/url"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/warmpath/warmpath/cache/goredis"
)

// kind is the kind of servers behind a URL.
type kind string

const (
	single   kind = "single"
	sentinel kind = "sentinel"
	cluster  kind = "cluster"
	pool     kind = "pool"
)

// errURL contains nothing of the URL, which may hold a password.
var errURL = errors.New(`remote: it is no URL of a Redis; write "redis://USER:PASSWORD@HOST:PORT/DB", "rediss://..." ` +
	`for TLS, "redis://SENTINEL:PORT/DB?master_name=NAME&addr=SENTINEL2:PORT&username=USER&password=PASSWORD" or ` +
	`"redis://USER:PASSWORD@NODE:PORT?cluster=true&addr=NODE2:PORT", with special characters percent-encoded`)

// parsed holds the options of a URL, in the form for its kind.
type parsed struct {
	kind     kind
	single   *redis.Options
	sentinel *redis.FailoverOptions
	cluster  *redis.ClusterOptions
}

// parseURL parses a URL in go-redis's form: ParseURL's, ParseFailoverURL's if it names a master, or ParseClusterURL's
// with cluster=true.
func parseURL(text string) (p parsed, err error) {
	u, err := url.Parse(text)
	if err != nil {
		return p, errURL
	}
	q := u.Query()
	isCluster := false
	if text := q.Get("cluster"); text != "" {
		isCluster, err = strconv.ParseBool(text)
		if err != nil {
			return p, errURL
		}
	}
	q.Del("cluster")
	u.RawQuery = q.Encode()
	connections := 0
	switch {
	case q.Get("master_name") != "":
		p.kind = sentinel
		p.sentinel, err = redis.ParseFailoverURL(u.String())
		if err == nil {
			connections = p.sentinel.PoolSize
		}
	case isCluster:
		p.kind = cluster
		p.cluster, err = redis.ParseClusterURL(u.String())
		if err == nil {
			connections = p.cluster.PoolSize
		}
	default:
		p.kind = single
		p.single, err = redis.ParseURL(u.String())
		if err == nil {
			connections = p.single.PoolSize
		}
	}
	if err != nil || !goredis.PoolFits(connections) {
		return p, errURL
	}
	return p, nil
}

// CheckURL reports what is wrong with the URL of a Redis. The error does not show it.
func CheckURL(text string) error {
	_, err := parseURL(text)
	return err
}
