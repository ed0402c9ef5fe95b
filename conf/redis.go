package conf

import (
	"fmt"
	"net/url"
	"strings"
)

// RedisFiles are the PEM files of TLS with the Redis of a table; "" = none.
type RedisFiles struct {
	Table     string // of the configuration, where they stand
	CA        string // who signs the Redis's certificate
	Cert, Key string // for a Redis that asks for a certificate
}

// redisURL returns a URL that stands inline, or in a file. An error names the file's path in the configuration, and
// never shows the URL: it may hold a password.
func redisURL(path, inline, file string) (string, error) {
	if file == "" {
		return inline, nil
	}
	s, f := secret(file, "", 1)
	if f != nil {
		return "", fmt.Errorf("conf: %s: %s; %s", path, f.what, f.remedy)
	}
	return s, nil
}

// checkRedis checks the form of a URL without showing it: it may hold a password.
func checkRedis(r *report, path, s string) {
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "redis" && u.Scheme != "rediss" && u.Scheme != "unix" || u.Host == "" && u.Path == "" {
		r.add(path, "it is no URL of a Redis", "write redis://HOST:PORT/DB, rediss://USER:PASSWORD@HOST:PORT or unix:///PATH")
		return
	}
	if strings.ContainsAny(u.Host, ", ;") {
		r.add(path, "it names several hosts", `write "redis://SENTINEL:PORT?master_name=NAME&addr=SENTINEL2:PORT", or `+
			`"redis://NODE:PORT?cluster=true&addr=NODE2:PORT" for a cluster`)
	}
}

// checkRedisFiles checks the files of TLS with the Redis whose URL, s, stands at path.
func checkRedisFiles(r *report, f RedisFiles, path, s string) {
	checkAuthorities(r, child(f.Table, "tls_ca_file"), f.CA)
	checkCertificate(r, f.Table, f.Cert, f.Key)
	if f.CA+f.Cert+f.Key == "" {
		return
	}
	u, err := url.Parse(s)
	switch {
	case s == "" && path == child(f.Table, "redis"): // what is wrong with redis_url_file is reported already
		r.add(path, "tls_ca_file or tls_cert_file stands beside it, and no URL of a Redis",
			"write a rediss:// URL, or leave those files out")
	case err == nil && (u.Scheme == "redis" || u.Scheme == "unix"):
		r.add(path, noTLS(u.Scheme), "write rediss://, or leave those files out")
	}
}

// noTLS reports that a URL of this scheme does not use the files of TLS.
func noTLS(scheme string) string {
	return fmt.Sprintf("with tls_ca_file or tls_cert_file it is to be a rediss:// URL: %s:// is without TLS", scheme)
}
