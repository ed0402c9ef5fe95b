package conf

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/BurntSushi/toml"
)

// ParseWorker reads a worker that registers itself in pool p. Keys, defaults and checks are those of
// [[pools.workers]].
func (c *Config) ParseWorker(p *Pool, keys map[string]any) (Worker, error) {
	var text bytes.Buffer
	if err := toml.NewEncoder(&text).Encode(map[string]any{"workers": []map[string]any{keys}}); err != nil {
		return Worker{}, fmt.Errorf("a value is neither a text nor a number nor a table of texts: %w", err)
	}
	list, err := parseWorkers(text.Bytes(), "")
	if err == nil {
		r := new(report)
		checkNotSelf(r, "workers", list, c.Server.Listen)
		if w := &list[0]; !p.Disaggregation.On() && w.Role != RoleBoth && w.Role != "" {
			r.add("workers[0].role", fmt.Sprintf("%q does nothing in this pool", w.Role),
				"leave it out, or write [pools.disaggregation] with connector into the file")
		}
		err = r.err()
	}
	if all, is := errors.AsType[Problems](err); is {
		var lines []string
		for _, one := range all {
			key := strings.TrimPrefix(strings.TrimPrefix(one.Key, "workers[0]"), ".")
			lines = append(lines, fmt.Sprintf("%s: %s; %s", key, one.What, one.Remedy))
		}
		err = errors.New(strings.Join(lines, "; "))
	}
	if err != nil {
		return Worker{}, err
	}
	return list[0], nil
}

// Address returns where a worker is: two URLs with the same address lead to one worker.
func (w *Worker) Address() string {
	address, _ := checkWorkerURL(new(report), "", w.URL)
	return address
}

// CheckLabels returns an error if the workers of a pool have too many different labels.
func CheckLabels(workers []Worker) error {
	r := new(report)
	checkLabelCount(r, workers, func(int) string { return "" })
	if len(r.list) > 0 {
		return fmt.Errorf("%s; %s", r.list[0].What, r.list[0].Remedy)
	}
	return nil
}
