package catalogue

import (
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/request/epoch"
	"github.com/warmpath/warmpath/daemon/request/message"
	"github.com/warmpath/warmpath/daemon/request/names"
)

// Catalogue has the models that callers see, made once for all that may see the same. Its zero value is empty. It is
// safe for concurrent use.
type Catalogue struct {
	mu    sync.Mutex // guards all below
	epoch *epoch.Epoch
	of    map[string]*view // of epoch, by Caller.Rights
}

const (
	// maxViews bounds those that are kept, some .7 MB each with 2,000 models.
	maxViews = 32
	// renewEntries is how long entries are used whose lists were read anew with the same models.
	renewEntries = time.Second
)

// view has the models that some callers see.
type view struct {
	made    time.Time
	lists   [][]worker.List // of each pool
	ids     []string
	entries map[string]json.RawMessage // by id
	pages   [2][]byte                  // of OpenAI, of Anthropic; nil = not made
}

// page returns the answer to GET /v1/models.
func (c *Catalogue) page(in *message.Inbound) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	l, shape := c.get(in), 0
	if in.SpeaksAnthropic() {
		shape = 1
	}
	if l.pages[shape] == nil {
		l.pages[shape] = l.write(shape == 1)
	}
	return l.pages[shape]
}

// entry returns the entry of the model of that id, nil if no worker lists it.
func (c *Catalogue) entry(in *message.Inbound, id string) json.RawMessage {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.get(in).entries[id]
}

// get returns the view of the caller. It makes a new one if a worker has come, gone or listed other models, and
// if lists were read anew that are renewEntries old. c.mu is held.
func (c *Catalogue) get(in *message.Inbound) *view {
	var now [][]worker.List
	for _, p := range in.Epoch.Pools {
		now = append(now, p.Workers.Listings(p.Pairing.Answering(in.Caller.Workers)))
	}
	rights := in.Caller.Rights()
	if c.epoch != in.Epoch || c.of[rights] == nil && len(c.of) >= maxViews {
		c.epoch = in.Epoch
		c.of = map[string]*view{}
	}
	l := c.of[rights]
	as := worker.List.Same
	if l != nil && time.Since(l.made) < renewEntries {
		as = worker.List.Renews
	}
	if l != nil && slices.EqualFunc(l.lists, now, func(a, b []worker.List) bool { return slices.EqualFunc(a, b, as) }) {
		return l
	}
	l = newView(in, now)
	c.of[rights] = l
	return l
}

// newView lists each id once, as its worker wrote it, if the pool serves it and the caller may use it, and then
// the aliases.
func newView(in *message.Inbound, lists [][]worker.List) *view {
	l := &view{made: time.Now(), lists: lists, entries: map[string]json.RawMessage{}}
	listed := map[string]json.RawMessage{} // for whomever
	for i, p := range in.Epoch.Pools {
		for _, list := range lists[i] {
			for k, id := range list.IDs {
				if listed[id] != nil || in.Epoch.For(id) != p {
					continue
				}
				listed[id] = list.Entries[k]
				if in.Caller.Allows(id) && in.Epoch.Names.Find(id) == nil && !in.Epoch.Names.Hides(id) {
					l.add(id, list.Entries[k])
				}
			}
		}
	}
	for _, a := range in.Epoch.Names.All() {
		if a.Hidden || !in.MayUse(a.Name) {
			continue
		}
		if entry := entryOf(&a, listed); entry != nil {
			l.add(a.Name, entry)
		}
	}
	return l
}

func (l *view) add(id string, entry json.RawMessage) {
	l.ids = append(l.ids, id)
	l.entries[id] = entry
}

// entryOf returns the entry of the alias's first target that is listed, or else of the fallbacks that answer for it,
// under the alias's name; nil if nobody would.
func entryOf(a *names.Alias, listed map[string]json.RawMessage) json.RawMessage {
	for ; a != nil; a = a.After(names.Down) {
		for _, t := range a.Targets {
			var entry map[string]json.RawMessage
			if json.Unmarshal(listed[t.Model], &entry) == nil {
				entry["id"], _ = json.Marshal(a.Name)
				renamed, _ := json.Marshal(entry)
				return renamed
			}
		}
	}
	return nil
}

// write returns the page of all models.
func (l *view) write(anthropic bool) (page []byte) {
	if !anthropic {
		all := struct {
			Object string            `json:"object"`
			Data   []json.RawMessage `json:"data"`
		}{"list", []json.RawMessage{}}
		for _, id := range l.ids {
			all.Data = append(all.Data, l.entries[id])
		}
		page, _ = json.Marshal(all)
		return page
	}
	all := aboutModels{Data: []aboutModel{}}
	for _, id := range l.ids {
		all.Data = append(all.Data, anthropicModel(id, l.entries[id]))
	}
	if len(l.ids) > 0 {
		all.FirstID, all.LastID = &l.ids[0], &l.ids[len(l.ids)-1]
	}
	page, _ = json.Marshal(all)
	return page
}
