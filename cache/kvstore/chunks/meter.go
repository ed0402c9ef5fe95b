package chunks

import (
	"cmp"
	"slices"
	"sync"
)

// DefaultTokens is LMCache's default chunk_size.
const DefaultTokens = 256

const (
	maxModels = 64      // the bytes of further models count as no KV
	maxParts  = 512     // of a model: ranks times layers
	minBytes  = 1 << 10 // of a token: the smallest models have 12,000. A false value cannot make a router's index grow
	recent    = 32      // values in a part's mean
)

// Meter measures the bytes of a token. Many goroutines may call its methods at once.
type Meter struct {
	chunk int64 // tokens of a value that does not show them
	given bool  // chunk was configured
	fill  int64 // bytes of the tier

	mu     sync.Mutex // guards all below
	models map[string]*model
	other  float64 // bytes put lately that are not KV
	total  float64 // bytes put lately
}

// model sums up the puts of one model.
type model struct {
	bytes float64 // put lately
	parts map[string]*part
	told  bool // some value showed its tokens
}

// part is the KV of one rank, or of one layer of it.
type part struct {
	perToken float64
	values   int
}

// NewMeter makes a meter for a tier of tierBytes. chunkTokens is the chunk_size of the workers' LMCache; 0 = not known.
func NewMeter(tierBytes int64, chunkTokens int) *Meter {
	return &Meter{chunk: int64(cmp.Or(max(0, chunkTokens), DefaultTokens)), given: chunkTokens > 0,
		fill: max(1, tierBytes), models: map[string]*model{}}
}

// Put records a value: its key, its size, and its first bytes, of which 28 suffice.
func (m *Meter) Put(key string, size int64, head []byte) {
	k, ok := ParseKey(key)
	m.mu.Lock()
	defer m.mu.Unlock()
	defer m.age()
	m.total += float64(size)
	p := m.part(k, ok)
	if p == nil {
		m.other += float64(size)
		return
	}
	model := m.models[k.Model]
	model.bytes += float64(size)
	s, told := parseMetadata(head)
	switch {
	case k.Kind == Payload: // counted with its metadata
	case k.Kind == Metadata:
		if told && size == metadataBytes && s.tokens > 0 {
			model.told = true
			p.take(float64(s.length) / float64(s.tokens))
		}
	case told && s.length == size-metadataBytes && s.tokens > 0:
		model.told = true
		p.take(float64(size) / float64(s.tokens))
	case !model.told && size > 0:
		p.take(float64(size) / float64(m.chunk))
	}
}

// age halves the sums once the tier could have been filled twice.
func (m *Meter) age() {
	if m.total < 2*float64(m.fill) {
		return
	}
	m.total /= 2
	m.other /= 2
	for name, model := range m.models {
		model.bytes /= 2
		if model.bytes < m.total/1e6 { // no longer put
			delete(m.models, name)
		}
	}
}

// part returns the part that a value belongs to; nil = none.
func (m *Meter) part(k Key, ok bool) *part {
	if !ok {
		return nil
	}
	one := m.models[k.Model]
	if one == nil {
		if len(m.models) >= maxModels {
			return nil
		}
		one = &model{parts: map[string]*part{}}
		m.models[k.Model] = one
	}
	p := one.parts[k.Part]
	if p == nil {
		if len(one.parts) >= maxParts {
			return nil
		}
		p = new(part)
		one.parts[k.Part] = p
	}
	return p
}

func (p *part) take(perToken float64) {
	if p.values < recent {
		p.values++
	}
	p.perToken += (perToken - p.perToken) / float64(p.values)
}

// Estimate is the capacity of a tier in tokens.
type Estimate struct {
	Tokens       int64   `json:"room"`          // that fit into the bytes; 0 = no put has shown it
	Guessed      bool    `json:"guessed"`       // of some model no value showed its tokens
	ChunkTokens  int     `json:"chunk_tokens"`  // that were assumed for it
	ChunkGuessed bool    `json:"chunk_guessed"` // these are LMCache's default
	Models       []Model `json:"models"`
}

// Model is one model's part of an Estimate.
type Model struct {
	Name          string  `json:"model"`
	BytesPerToken float64 `json:"bytes_per_token"`
	Parts         int     `json:"parts"` // values that together are a token's KV: ranks, or layers
	Share         float64 `json:"share"` // of the bytes put lately
	Guessed       bool    `json:"guessed"`
}

// Estimate returns how many tokens of the present puts fit into bytes.
func (m *Meter) Estimate(bytes int64) Estimate {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := Estimate{ChunkTokens: int(m.chunk), ChunkGuessed: !m.given, Models: []Model{}}
	tokens := 0.
	for name, model := range m.models {
		out := Model{Name: name, Parts: len(model.parts), Share: model.bytes / max(1, m.total), Guessed: !model.told}
		for _, p := range model.parts {
			out.BytesPerToken += p.perToken
		}
		if out.BytesPerToken > 0 {
			tokens += float64(bytes) * out.Share / max(minBytes, out.BytesPerToken)
			e.Guessed = e.Guessed || out.Guessed
		}
		e.Models = append(e.Models, out)
	}
	e.Tokens = int64(tokens)
	slices.SortFunc(e.Models, func(a, b Model) int {
		return cmp.Or(cmp.Compare(b.Share, a.Share), cmp.Compare(a.Name, b.Name))
	})
	return e
}
