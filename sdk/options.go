package sdk

import (
	"errors"
	"slices"
	"strconv"

	"github.com/warmpath/warmpath/sdk/abi"
)

// Options are the scalars under the strategy's options key of the configuration. Each getter takes the default that
// holds when the key is absent. A value of the wrong type, and a key that no getter asked for, make the host refuse the
// module with the key and the remedy, so Configure needs to check only what is its own.
type Options struct {
	pairs map[string]string
	known []string
	err   error
}

// String returns the option's text.
func (o *Options) String(key, absent string) string {
	if v, ok := o.get(key); ok {
		return v
	}
	return absent
}

// Float returns the option as a number.
func (o *Options) Float(key string, absent float64) float64 {
	v, ok := o.get(key)
	if !ok {
		return absent
	}
	f, err := strconv.ParseFloat(v, 64)
	if err != nil || f-f != 0 { // Inf and NaN are no settings
		o.refuse(key, v, "a number")
		return absent
	}
	return f
}

// Int returns the option as a whole number.
func (o *Options) Int(key string, absent int) int {
	v, ok := o.get(key)
	if !ok {
		return absent
	}
	n, err := strconv.Atoi(v)
	if err != nil {
		o.refuse(key, v, "a whole number")
		return absent
	}
	return n
}

// Bool returns the option as true or false.
func (o *Options) Bool(key string, absent bool) bool {
	v, ok := o.get(key)
	if !ok {
		return absent
	}
	if v != "true" && v != "false" {
		o.refuse(key, v, "true or false")
		return absent
	}
	return v == "true"
}

func (o *Options) get(key string) (string, bool) {
	o.known = append(o.known, key)
	v, ok := o.pairs[key]
	return v, ok
}

func (o *Options) refuse(key, value, want string) {
	if o.err == nil {
		o.err = errors.New("sdk: option " + strconv.Quote(key) + " is " + strconv.Quote(value) + "; want " + want)
	}
}

// unknown returns an error for the first key, in order, that no getter asked for.
func (o *Options) unknown() error {
	first, found := "", false
	for key := range o.pairs {
		if !slices.Contains(o.known, key) && (!found || key < first) {
			first, found = key, true
		}
	}
	if !found {
		return nil
	}
	remedy := "the strategy has no options; remove it"
	if len(o.known) > 0 {
		remedy = "the strategy knows"
		for _, key := range o.known {
			remedy += " " + key
		}
	}
	return errors.New("sdk: unknown option " + strconv.Quote(first) + "; " + remedy)
}

// Configure gives s the options in the encoding of [abi.AppendOption], as the host does before the first pick.
func Configure(s Strategy, encoded []byte) error {
	o := Options{pairs: map[string]string{}}
	for len(encoded) > 0 {
		key, value, rest, ok := abi.NextOption(encoded)
		if !ok {
			return errors.New("sdk: options are cut short; the host must write pairs as in abi.AppendOption")
		}
		o.pairs[key], encoded = value, rest
	}
	if c, ok := s.(Configurer); ok {
		if err := c.Configure(&o); err != nil {
			return err
		}
	}
	if o.err != nil {
		return o.err
	}
	return o.unknown()
}
