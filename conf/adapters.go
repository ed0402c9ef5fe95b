package conf

import (
	"fmt"
	"strings"
)

// Adapters is from where the workers of a pool load LoRA adapters that requests ask for.
type Adapters struct {
	Source string `toml:"source"` // path at the workers, with {name} for the adapter's name; "" = none is loaded
	Max    int    `toml:"max"`    // adapters at a worker at a time; 0 = no bound
}

func checkAdapters(r *report, path string, a *Adapters) {
	at := child(path, "adapters")
	if a.Source != "" && (strings.Count(a.Source, "{name}") != 1 || strings.ContainsAny(a.Source, "\r\n\x00")) {
		r.add(child(at, "source"), fmt.Sprintf("%.80q does not have {name} once", a.Source),
			`write where the workers find an adapter, as "/adapters/{name}"`)
	}
	r.between(child(at, "max"), a.Max, 0, maxCount, "adapters, 0 for no bound,")
	if a.Max > 0 && a.Source == "" {
		r.add(child(at, "max"), "it bounds nothing: without source no adapter is loaded",
			`write source, as "/adapters/{name}"`)
	}
}
