package kvevents

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"os"
	"slices"
	"testing"

	"github.com/warmpath/warmpath/cache/parts/blocks"
)

var versions = []string{"0.11.1", "0.19.1", "0.32.0"}

type recorded struct {
	step    string
	seq     uint64
	payload []byte
}

// recordedLines calls line with each line of a recording.
func recordedLines(t testing.TB, file string, line func([]byte)) {
	t.Helper()
	f, err := os.Open("testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s := bufio.NewScanner(f)
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		line(s.Bytes())
	}
}

func recordedEvents(t testing.TB, version string) (all []recorded) {
	t.Helper()
	recordedLines(t, "vllm-"+version+"-events.jsonl", func(b []byte) {
		var l struct {
			Step   string
			Frames []string
		}
		if err := json.Unmarshal(b, &l); err != nil {
			t.Fatal(err)
		}
		all = append(all, recorded{l.Step, binary.BigEndian.Uint64(unhex(t, l.Frames[1])), unhex(t, l.Frames[2])})
	})
	return all
}

// place is where a hash stands: its block after those of its parent.
type place struct {
	salt   string
	tokens string // of the whole chain up to the block's end, four bytes each
}

// cache is an oracle: what a worker holds by its events, as plainly as can be.
type cache struct {
	t    *testing.T
	at   map[uint64]place
	held map[place]int
	size int

	announcing bool // the next store repeats what is there, and stands for no new block
}

func newCache(t *testing.T) *cache {
	return &cache{t: t, at: map[uint64]place{}, held: map[place]int{}}
}

func (c *cache) Store(s *blocks.Stored) {
	p := place{salt: s.Salt}
	if s.HasParent {
		var known bool
		if p, known = c.at[s.Parent]; !known {
			c.t.Errorf("parent %d was never stored", s.Parent)
		}
	}
	c.size = s.BlockSize
	again := c.announcing
	for i, h := range s.Hashes {
		for _, token := range s.Tokens[i*s.BlockSize : (i+1)*s.BlockSize] {
			p.tokens += string(binary.BigEndian.AppendUint32(nil, token))
		}
		c.at[h] = p
		if again && c.held[p] > 0 {
			continue
		}
		c.held[p]++
	}
}

func (c *cache) Remove(_ blocks.Medium, hashes []uint64) {
	for _, h := range hashes {
		p := c.at[h]
		c.held[p]--
		if c.held[p] < 0 {
			c.t.Errorf("hash %d is removed more often than it was stored", h)
		}
	}
}

func (c *cache) Clear() {
	clear(c.held)
}

// believed is the leading tokens of the prompt that the cache holds, by the engine's own rule: the last token is always
// computed.
func (c *cache) believed(prompt []uint32, salt string) int {
	p := place{salt: salt}
	n := 0
	for c.size > 0 && (n+1)*c.size < len(prompt) {
		for _, token := range prompt[n*c.size : (n+1)*c.size] {
			p.tokens += string(binary.BigEndian.AppendUint32(nil, token))
		}
		if c.held[p] <= 0 {
			break
		}
		n++
	}
	return n * c.size
}

// Before each request of a recording the events so far give as many cached tokens as the engine then counted.
func TestRecordedBelief(t *testing.T) {
	for _, version := range versions {
		c := newCache(t)
		var d Decoder
		events := recordedEvents(t, version)
		compared := 0
		recordedLines(t, "vllm-"+version+"-requests.jsonl", func(b []byte) {
			var r struct {
				Step, Salt string
				Prompt     []uint32
				Fields     []string
				Cached     *int `json:"cached_tokens"`
			}
			if err := json.Unmarshal(b, &r); err != nil {
				t.Fatal(err)
			}
			if r.Prompt == nil {
				c.Clear() // a reset, which is announced with the next store only
				return
			}
			cached := 0
			if r.Cached != nil {
				cached = *r.Cached
			}
			skips := slices.Contains(r.Fields, "prompt_logprobs") // such a request does not read the cache
			if got := c.believed(r.Prompt, r.Salt); got != cached && !skips {
				t.Errorf("vLLM %s, %q: believed %d tokens; the engine found %d", version, r.Step, got, cached)
			}
			compared++
			c.announcing = slices.Contains(r.Fields, "vllm_xargs") // kv_cache_report_mode full, which only 0.26 and later know
			for len(events) > 0 && events[0].step == r.Step {
				if _, err := d.Decode(events[0].payload, c); err != nil {
					t.Errorf("vLLM %s, %q: %v", version, r.Step, err)
				}
				events = events[1:]
			}
		})
		events = slices.DeleteFunc(events, func(m recorded) bool { return version == "0.11.1" && m.seq >= 20 }) // other requests'
		if len(events) > 0 || compared < 15 || d.Skipped() != (Skipped{}) {
			t.Errorf("vLLM %s: %d requests, %d messages left over, skipped %+v", version, compared, len(events), d.Skipped())
		}
	}
}
