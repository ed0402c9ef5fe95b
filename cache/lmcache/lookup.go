package lmcache

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
)

// lookup asks where chunks are: those of the keys given, or of a prompt's tokens, as a whole number of chunks.
type lookup struct {
	keys   []objectKey
	model  string
	world  int
	tokens []uint32
	salt   string
}

// lookup reads a request for look-ups.
func (x *items) lookup() (l lookup, err error) {
	fields := map[string]any{"model_name": &l.model, "world_size": &l.world, "cache_salt": &l.salt}
	err = x.object(func(name string) error {
		switch name {
		case "keys":
			return x.list(func() error { return x.key(&l) })
		case "token_ids":
			return x.list(func() error { return x.token(&l) })
		}
		return x.value(fields[name])
	})
	if err == nil && len(l.model)+len(l.salt) > 2*maxName {
		err = fmt.Errorf("names of %d bytes; at most %d each", len(l.model)+len(l.salt), maxName)
	}
	return l, err
}

// keyBytes is the memory of a key without its texts, while a list of them grows.
const keyBytes = 160

func (x *items) key(l *lookup) error {
	var k objectKey
	if err := x.value(&k); err != nil {
		return err
	}
	if len(l.keys) == maxLookup {
		return fmt.Errorf("over %d keys in a look-up", maxLookup)
	}
	if max(len(k.Hash), len(k.Model), len(k.Salt)) > maxName {
		return fmt.Errorf("a key with a text of over %d bytes", maxName)
	}
	l.keys = append(l.keys, k)
	return x.keep(int64(keyBytes + len(k.Hash) + len(k.Model) + len(k.Salt)))
}

func (x *items) token(l *lookup) error {
	var id uint32
	if err := x.value(&id); err != nil {
		return err
	}
	if len(l.tokens) == maxPrompt {
		return fmt.Errorf("over %d tokens in a look-up", maxPrompt)
	}
	l.tokens = append(l.tokens, id)
	return x.keep(tokenBytes)
}

// each calls f with every key that l asks for, and returns how many chunks they are of.
func (l *lookup) each(sums [][]byte, f func(*objectKey) error) error {
	for n := range l.keys {
		if err := f(&l.keys[n]); err != nil {
			return err
		}
	}
	n := uint32(l.world)
	for _, sum := range sums {
		for rank := range n {
			if err := f(&objectKey{Hash: hex.EncodeToString(sum), Model: l.model, Salt: l.salt,
				Rank: n<<24 | rank<<16 | n<<8 | rank}); err != nil {
				return err
			}
		}
	}
	return nil
}

// sums returns the hashes of the prompt's chunks, none if keys are asked for.
func (l *lookup) sums(f *fleet) ([][]byte, error) {
	if len(l.keys) > 0 || l.world < 1 || l.world > maxRanks {
		return nil, nil
	}
	sums := f.serverSums(l.tokens)
	if len(sums)*l.world > maxLookup {
		return nil, fmt.Errorf("a prompt of %d parts in a look-up; at most %d", len(sums)*l.world, maxLookup)
	}
	return sums, nil
}

// located is one result of a look-up.
type located struct {
	Accesses   int         `json:"access_count"` // not kept
	Key        *objectKey  `json:"key"`
	Placements []placement `json:"placements"`
	Tokens     []uint32    `json:"token_ids"` // not kept
}

// answer writes the results one by one.
func (l *lookup) answer(f *fleet, sums [][]byte, w io.Writer) {
	chunks := len(l.keys) + len(sums)
	if _, err := fmt.Fprintf(w, `{"chunks":%d,"results":[`, chunks); err != nil {
		return
	}
	to, between := json.NewEncoder(w), ""
	err := l.each(sums, func(k *objectKey) error {
		one := located{Key: k, Placements: []placement{}, Tokens: []uint32{}}
		if sum, err := k.key(); err == nil {
			one.Placements = f.placements(k.spread(sum), k.rank())
		}
		if _, err := io.WriteString(w, between); err != nil {
			return err
		}
		between = ","
		return to.Encode(&one)
	})
	if err == nil {
		_, _ = io.WriteString(w, "]}\n")
	}
}
