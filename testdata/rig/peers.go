package rig

import (
	"fmt"
	"os/exec"
	"strings"
)

// Nginx starts nginx in front of workers, host:port each.
func Nginx(dir string, workers ...string) (*Proc, error) {
	bin, err := exec.LookPath("nginx")
	if err != nil {
		return nil, err
	}
	addr := FreeAddr()
	var servers strings.Builder
	for _, w := range workers {
		fmt.Fprintf(&servers, "server %s; ", w)
	}
	path, err := write(dir, "nginx.conf", fmt.Sprintf(`daemon off; master_process off; worker_processes 1;
pid %[1]s/nginx-%[2]s.pid; error_log stderr crit; worker_rlimit_nofile 20000;
events { worker_connections 20000; }
http {
  access_log off;
  client_body_temp_path %[1]s/b; proxy_temp_path %[1]s/p;
  fastcgi_temp_path %[1]s/f; uwsgi_temp_path %[1]s/u; scgi_temp_path %[1]s/s;
  client_max_body_size 64m; client_body_buffer_size 512k; keepalive_requests 100000000; keepalive_timeout 600s;
  upstream workers { %[3]s keepalive 512; keepalive_requests 100000000; keepalive_timeout 60s; }
  server {
    listen %[2]s backlog=4096;
    location / {
      proxy_pass http://workers; proxy_http_version 1.1; proxy_set_header Connection "";
      proxy_buffering off; proxy_read_timeout 600s; proxy_next_upstream error timeout non_idempotent;
    }
  }
}
`, dir, addr, servers.String()))
	if err != nil {
		return nil, err
	}
	p, err := Start(dir, "nginx", addr, bin, "-e", "stderr", "-p", dir, "-c", path)
	return awaited(p, err)
}

// Haproxy starts haproxy in front of workers, host:port each.
func Haproxy(dir string, workers ...string) (*Proc, error) {
	bin, err := exec.LookPath("haproxy")
	if err != nil {
		return nil, err
	}
	addr := FreeAddr()
	var servers strings.Builder
	for i, w := range workers {
		fmt.Fprintf(&servers, "  server w%d %s check inter 2s\n", i, w)
	}
	path, err := write(dir, "haproxy.cfg", fmt.Sprintf(`global
  nbthread 1
  maxconn 9900
defaults
  mode http
  timeout connect 1s
  timeout client 600s
  timeout server 600s
  option http-keep-alive
  option redispatch
  option abortonclose
  option http-no-delay
  http-reuse always
  retries 3
  retry-on conn-failure empty-response
frontend clients
  bind %s
  default_backend workers
backend workers
  option httpchk
  http-check send meth GET uri /health ver HTTP/1.1 hdr Host worker
%s`, addr, servers.String()))
	if err != nil {
		return nil, err
	}
	p, err := Start(dir, "haproxy", addr, bin, "-db", "-f", path)
	return awaited(p, err)
}

func awaited(p *Proc, err error) (*Proc, error) {
	if err == nil {
		if err = p.Await("/health"); err != nil {
			p.Stop()
		}
	}
	return p, err
}
