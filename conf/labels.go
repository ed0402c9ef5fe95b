package conf

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// MaxLabels bounds the different labels of one pool's workers: a strategy sees each as one bit of a worker's row.
const MaxLabels = 32

// Labels returns the different labels of the workers, each as name=value, sorted.
func Labels(workers []Worker) []string {
	var all []string
	for i := range workers {
		for name, value := range workers[i].Labels {
			all = append(all, name+"="+value)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Fence returns the labels of the workers that alone get the key's requests, each as name=value, sorted; none = any
// worker may.
func (k *Key) Fence() (labels []string) {
	for label := range strings.SplitSeq(k.Workers, ",") {
		if name, value, _ := strings.Cut(label, "="); strings.TrimSpace(label) != "" {
			labels = append(labels, strings.TrimSpace(name)+"="+strings.TrimSpace(value))
		}
	}
	slices.Sort(labels)
	return slices.Compact(labels)
}

// checkFence reports labels of a key that no worker can have.
func checkFence(r *report, path string, k *Key) {
	fence, values := k.Fence(), map[string]string{}
	for _, label := range fence {
		name, value, _ := strings.Cut(label, "=")
		if value == "" {
			fence = nil
			break
		}
		if first, two := values[name]; two {
			r.add(path, fmt.Sprintf("no worker has two labels %s: %.40q and %.40q", name, first, value),
				"name one, and give a worker that several keys share a label of its own for each, as for-acme = \"yes\"")
			return
		}
		values[name] = value
	}
	if k.Workers != "" && len(fence) == 0 {
		r.add(path, fmt.Sprintf("%.80q names no label", k.Workers), `write as "for=acme", or leave it out: any worker`)
		return
	}
	checkLabels(r, path, values)
}

// holds reports whether some worker has all of the labels, each as name=value. A role is one of them.
func holds(workers []Worker, labels []string) bool {
	return slices.ContainsFunc(workers, func(w Worker) bool {
		has := Labels([]Worker{w})
		if role := w.RoleOf(); role != RoleBoth {
			has = append(has, RoleLabel+"="+role)
		}
		return !slices.ContainsFunc(labels, func(l string) bool { return !slices.Contains(has, l) })
	})
}

// checkLabels reports a worker's labels whose name or value is not allowed.
func checkLabels(r *report, path string, labels map[string]string) {
	const (
		safe   = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/"
		remedy = "write up to 64 letters, digits, dots, dashes, underscores or slashes"
	)
	wrong := func(s string) bool { return s == "" || len(s) > 64 || strings.Trim(s, safe) != "" }
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		at := child(path, name)
		if wrong(name) {
			r.add(at, fmt.Sprintf("%.80q is no name of a label", name), remedy)
		}
		if value := labels[name]; wrong(value) {
			r.add(at, fmt.Sprintf("%.80q is no value of a label", value), remedy)
		}
	}
}

// checkLabelCount reports the first of a pool's workers at which the pool has more labels than a row has bits. at
// returns the path of the worker with that index.
func checkLabelCount(r *report, workers []Worker, at func(i int) string) {
	seen := map[string]bool{}
	for i := range workers {
		for _, label := range Labels(workers[i : i+1]) {
			seen[label] = true
		}
		if n := len(seen); n > MaxLabels {
			r.add(at(i), fmt.Sprintf("with it the pool's workers have %d different labels", n),
				fmt.Sprintf("give the workers of a pool at most %d: each name with a value counts as one", MaxLabels))
			return
		}
	}
}
