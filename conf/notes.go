package conf

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Notes lists what is not wrong, and hardly meant: keys without an effect, and certificates outside their dates, which
// serve must start with all the same.
func Notes(c *Config) []Problem {
	r := &report{file: c.Path, lines: c.lines}
	noteUnused(r, c)
	noteCertificates(r, c, time.Now())
	noteEffects(r, c)
	for i := range c.Keys {
		noteKey(r, c, i)
		noteFence(r, c, i)
	}
	for i := range c.Pools {
		noteRoles(r, elem("pools", i), &c.Pools[i])
	}
	list, _ := r.err().(Problems)
	return append([]Problem{}, list...)
}

// noteUnused notes the tables [strategies.NAME] whose strategy no pool has.
func noteUnused(r *report, c *Config) {
	used := map[string]bool{}
	for i := range c.Pools {
		p := &c.Pools[i]
		for _, name := range append(append(beside(p), p.Strategy...), c.Activated[p.Name].InsteadOf) {
			used[name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Strategies)) {
		key := child("strategies", name)
		if c.lines[key] > 0 && !used[name] { // without a line it is a module of server.strategies_dir
			r.add(key, "no pool uses it, and it was not loaded",
				"name it as strategy, shadow or canary of a pool, or take the table out")
		}
	}
}

// soon is how long before its end a certificate is noted.
const soon = 14 * 24 * time.Hour

// noteCertificates notes each certificate, of ours or of an authority, that is outside its dates or soon will be.
func noteCertificates(r *report, c *Config, now time.Time) {
	files := [][2]string{{"server.tls_cert_file", c.Server.TLSCertFile}, {"kv_cache.tls_cert_file", c.KVCache.TLSCertFile},
		{"kv_cache.l2.tls_cert_file", c.KVCache.L2.TLSCertFile}, {"cache.tls_cert_file", c.Cache.TLSCertFile},
		{"history.tls_cert_file", c.History.TLSCertFile}}
	for i := range c.Pools {
		files = append(files, [2]string{child(elem("pools", i), "tls_ca_file"), c.Pools[i].TLSCAFile})
	}
	for _, f := range files {
		leaf := firstCertificate(f[1])
		switch {
		case leaf == nil:
		case now.After(leaf.NotAfter):
			r.add(f[0], fmt.Sprintf("%s has expired on %s", f[1], leaf.NotAfter.UTC().Format(time.RFC3339)), "renew it")
		case now.Before(leaf.NotBefore):
			r.add(f[0], fmt.Sprintf("%s is not valid before %s", f[1], leaf.NotBefore.UTC().Format(time.RFC3339)),
				"wait, or correct this machine's clock")
		case leaf.NotAfter.Sub(now) < soon:
			r.add(f[0], fmt.Sprintf("%s ends on %s", f[1], leaf.NotAfter.UTC().Format(time.RFC3339)), "renew it before")
		}
	}
}

// firstCertificate returns the first certificate of a file; nil if there is none, which is reported elsewhere.
func firstCertificate(file string) *x509.Certificate {
	if file == "" {
		return nil
	}
	data, err := read(file, maxPEM)
	if err != nil {
		return nil
	}
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		if block.Type == "CERTIFICATE" {
			leaf, _ := x509.ParseCertificate(block.Bytes)
			return leaf
		}
	}
	return nil
}

// noteFence notes the pools in which no worker that answers has the labels of a key, and those in which no prefiller
// has them. It skips pools that find their workers by discovery, whose labels are not known.
func noteFence(r *report, c *Config, i int) {
	fence, at := c.Keys[i].Fence(), child(elem("keys", i), "workers")
	for j := range c.Pools {
		p := &c.Pools[j]
		if len(fence) == 0 || discovers(p) || !c.reaches(&c.Keys[i], p.mayServe) {
			continue
		}
		prefill, answer := byRole(p)
		inside, labels := holds(prefill, fence), strings.Join(fence, " and ")
		switch {
		case holds(answer, fence) && (inside || len(prefill) == 0):
		case holds(answer, fence):
			r.add(at, fmt.Sprintf("no prefiller of pool %q has %s: prompts of key %q there are computed where they are answered",
				p.Name, labels, c.Keys[i].Name), "label a prefiller too, if that is not meant")
		case inside:
			r.add(at, fmt.Sprintf("only prefillers of pool %q have %s, and they answer nobody: requests of key %q there get 503",
				p.Name, labels, c.Keys[i].Name), "label a worker with another role too")
		default:
			r.add(at, fmt.Sprintf("no worker of pool %q has %s: requests of key %q there get 503", p.Name, labels,
				c.Keys[i].Name),
				"label its workers: labels = { NAME = \"VALUE\" }, or correct it; or keep the key's models out of that pool")
		}
	}
}

// byRole returns the workers of a pool that compute prompts for others, and those that answer.
func byRole(p *Pool) (prefill, answer []Worker) {
	d := &p.Disaggregation
	for _, w := range p.Workers {
		prefills := d.On() && w.RoleOf() == RolePrefill
		if prefills {
			prefill = append(prefill, w)
		}
		if !prefills || d.Answering {
			answer = append(answer, w)
		}
	}
	return prefill, answer
}

// noteRoles notes roles that are hardly meant.
func noteRoles(r *report, at string, p *Pool) {
	d := &p.Disaggregation
	if !d.On() {
		return
	}
	for i := range p.Workers {
		w := &p.Workers[i]
		label, labels := w.Labels[RoleLabel], child(elem(child(at, "workers"), i), "labels")
		switch {
		case label == "" || label == w.RoleOf():
		case w.Role != RoleBoth:
			r.add(labels, fmt.Sprintf("role = %q holds for the worker, and its label role = %q does nothing", w.Role, label),
				"write one of the two")
		default:
			r.add(labels, fmt.Sprintf("the label role = %q is no role: the worker does both", label),
				`write role = "prefill" or "decode"`)
		}
	}
	noteMeeting(r, child(at, "disaggregation"), p)
	if prefill, _ := byRole(p); len(prefill) > 0 && !discovers(p) && !slices.ContainsFunc(prefill, func(w Worker) bool {
		return !w.Drain
	}) {
		r.add(child(at, "disaggregation"), "all prefillers of the pool drain: the others compute all prompts",
			"take drain = true of one out, if that is not meant")
	}
}

// noteMeeting notes workers that answer and have no prefiller of their own labels, and labels that nobody has.
func noteMeeting(r *report, at string, p *Pool) {
	d := &p.Disaggregation
	prefill, answer := byRole(p)
	if discovers(p) {
		return
	}
	for i, name := range d.Same {
		if !slices.ContainsFunc(p.Workers, func(w Worker) bool { return w.Labels[name] != "" }) {
			r.add(elem(child(at, "same"), i), fmt.Sprintf("no worker has a label %s", name), "label them, or take it out")
		}
	}
	for _, w := range answer {
		if !slices.ContainsFunc(prefill, func(by Worker) bool { return d.Mates(&by) == d.Mates(&w) }) {
			r.add(child(at, "same"), fmt.Sprintf("no prefiller has the labels of worker %q: it computes its prompts itself",
				w.ID), "give it a prefiller, if that is not meant")
		}
	}
}

// discovers reports whether workers of the pool may come from elsewhere than the file of the configuration.
func discovers(p *Pool) bool {
	return p.WorkersFile != "" || p.WorkersDNS != "" || p.Kubernetes.On() || p.Disaggregation.discovers()
}

// mayServe reports whether the pool serves a model that a pattern fits.
func (p *Pool) mayServe(pattern string) bool {
	start, open := strings.CutSuffix(pattern, "*")
	return p.Serves(start) || open && slices.ContainsFunc(p.Models, func(m string) bool {
		return strings.HasPrefix(m, start) || strings.HasSuffix(m, "*") && strings.HasPrefix(start, m[:len(m)-1])
	})
}

// noteKey notes patterns of a key that no model of a pool can fit.
func noteKey(r *report, c *Config, i int) {
	at := child(elem("keys", i), "models")
	for _, pattern := range c.Keys[i].Models {
		alias := slices.ContainsFunc(c.Models, func(m Model) bool { return fits(pattern, m.Name) })
		if !alias && !slices.ContainsFunc(c.Pools, func(p Pool) bool { return p.mayServe(pattern) }) {
			r.add(at, fmt.Sprintf("no pool serves %.80q: the key can ask for nothing there", pattern),
				"correct it, or models of the pool")
		}
	}
}
