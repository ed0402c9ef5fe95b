package conf

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
)

// CacheSalt is what keeps the prompts of a key apart in the workers' KV caches. The zero value keeps nothing apart.
type CacheSalt struct {
	On   bool   `toml:"-"`
	Text string `toml:"-"` // "" = made of the key
}

// UnmarshalTOML reads true, false or a text.
func (s *CacheSalt) UnmarshalTOML(v any) error {
	*s = CacheSalt{}
	switch v := v.(type) {
	case bool:
		s.On = v
		return nil
	case string:
		const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"
		if slices.Contains([]string{"true", "yes", "on", "false", "no", "off", "none"}, strings.ToLower(v)) {
			return &fault{fmt.Sprintf("%q would be a salt that everybody can guess", v), "write true or false, without quotes"}
		}
		if v != "" && len(v) <= 128 && strings.Trim(v, plain) == "" {
			*s = CacheSalt{On: true, Text: v}
			return nil
		}
	}
	return &fault{"it is neither true or false, nor a salt of 1 to 128 letters, digits, dots, dashes and underscores",
		`write true, so that nobody can guess the salt, or a text, as "team-a-5f3c"`}
}

// Of returns the salt of a key; "" = none. All routers with the same key make the same one.
func (s CacheSalt) Of(name, secret string) string {
	if !s.On || s.Text != "" {
		return s.Text
	}
	sum := sha256.Sum256([]byte("warmpath cache_salt\x00" + name + "\x00" + secret))
	return base64.RawURLEncoding.EncodeToString(sum[:16])
}
