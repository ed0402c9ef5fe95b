package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/warmpath/warmpath/testdata/rig"
	"github.com/warmpath/warmpath/testdata/rig/wire"
)

// watch is a Prometheus with the alerts that are shipped.
type watch struct {
	prometheus *rig.Proc
	targets    string // file

	mu  sync.Mutex
	all []string // guarded by mu
}

func startWatch(dir string) (*watch, error) {
	root, err := rig.Root()
	if err != nil {
		return nil, err
	}
	w := &watch{targets: filepath.Join(dir, "targets.json")}
	if err := os.WriteFile(w.targets, []byte("[]"), 0o600); err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "prometheus.yml")
	conf := fmt.Sprintf("global: {scrape_interval: 1s, evaluation_interval: 1s}\n"+
		"rule_files: [%s/deploy/prometheus/alerts.yml]\n"+
		"scrape_configs: [{job_name: warmpath, authorization: {credentials: %s}, file_sd_configs: [{files: [%s]}]}]\n",
		root, adminToken, w.targets)
	if err := os.WriteFile(file, []byte(conf), 0o600); err != nil {
		return nil, err
	}
	addr := rig.FreeAddr()
	w.prometheus, err = rig.Start(dir, "prometheus", addr, "prometheus", "--config.file="+file,
		"--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+addr)
	if err != nil {
		return nil, err
	}
	return w, w.prometheus.Await("/-/ready")
}

// add has a daemon scraped from now on.
func (w *watch) add(admin string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = append(w.all, admin)
	text, err := json.Marshal([]map[string][]string{{"targets": w.all}})
	if err != nil {
		return err
	}
	return rig.Replace(w.targets, string(text))
}

// alerts returns the names of the alerts of a daemon.
func (w *watch) alerts(admin string) string {
	var reply struct {
		Data struct {
			Alerts []struct{ Labels map[string]string }
		}
	}
	a := wire.GetFrom(w.prometheus.Addr, "/api/v1/alerts")
	if err := json.Unmarshal(a.Body, &reply); err != nil {
		return "unread: " + err.Error()
	}
	var names []string
	for _, alert := range reply.Data.Alerts {
		if alert.Labels["instance"] == admin {
			names = append(names, alert.Labels["alertname"])
		}
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), " ")
}
