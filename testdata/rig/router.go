package rig

import (
	"fmt"
	"os"
	"strings"
)

// Router is warmpath's configuration, in TOML's words.
type Router struct {
	Server     string   // lines of [server]
	Pool       string   // lines of [[pools]]
	Strategies string   // tables under [strategies]
	Workers    []string // host:port each
	Files      int      // limit of its open descriptors; 0 = as this process
	TLS        bool     // Server names a certificate: ask the operator's port whether it is ready
}

// text is the file.
func (r Router) text(listen, admin string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "[server]\nlisten = %q\nadmin = %q\nlog_level = \"warn\"\n%s\n[[pools]]\n%s\n", listen, admin,
		r.Server, r.Pool)
	b.WriteString(Tables("pools.workers", r.Workers))
	b.WriteString(r.Strategies)
	return b.String()
}

// Tables are the tables of workers, as they stand in a configuration (name pools.workers) or in a workers_file
// (workers).
func Tables(name string, workers []string) string {
	var b strings.Builder
	for i, w := range workers {
		fmt.Fprintf(&b, "[[%s]]\nid = \"w%d\"\nurl = \"http://%s\"\n", name, i, w)
	}
	return b.String()
}

// Start runs the binary as `serve` and waits until it is ready. If another process has taken one of its ports meanwhile
// it gets others.
func (r Router) Start(dir, bin string) (*Proc, error) {
	for tries := 1; ; tries++ {
		p, err := r.start(dir, bin)
		if err == nil || tries == 3 || !strings.Contains(err.Error(), "address already in use") {
			return p, err
		}
	}
}

// start is one try of Start.
func (r Router) start(dir, bin string) (*Proc, error) {
	listen, admin := FreeAddr(), FreeAddr()
	path, err := write(dir, "warmpath.toml", r.text(listen, admin))
	if err != nil {
		return nil, err
	}
	command := []string{bin, "serve", "--config", path}
	if r.Files > 0 {
		command = append([]string{"sh", "-c", fmt.Sprintf(`ulimit -n %d && exec "$@"`, r.Files), "sh"}, command...)
	}
	p, err := Start(dir, "warmpath", listen, command...)
	if err != nil {
		return nil, err
	}
	p.Admin, p.Conf = admin, path
	at := p.Addr
	if r.TLS {
		at = p.Admin
	}
	if err := p.awaitAt(at, "/ready"); err != nil {
		p.Stop()
		return nil, err
	}
	return p, nil
}

// Serve runs `warmpath serve` with a configuration, and waits until addr, one of its listeners, accepts
// connections. Router.Start is for a configuration with workers.
func Serve(dir, bin, addr, text string) (*Proc, error) {
	path, err := write(dir, "warmpath.toml", text)
	if err != nil {
		return nil, err
	}
	p, err := listening(Start(dir, "warmpath", addr, bin, "serve", "--config", path))
	if err == nil {
		p.Conf = path
	}
	return p, err
}

// Rewrite replaces the configuration of a running process; it is told by itself or by SIGHUP. The file is renamed into
// place, so that no half of it is ever read.
func (r Router) Rewrite(p *Proc) error { return Replace(p.Conf, r.text(p.Addr, p.Admin)) }

// Replace puts text into a file in one step.
func Replace(path, text string) error {
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
