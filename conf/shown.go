package conf

import (
	"net/url"
	"reflect"
	"strings"
	"time"
)

// hidden stands where a configuration has a secret.
const hidden = "(hidden)"

// Shown returns the configuration as tables of its keys, to be read by a person. Secrets are hidden: the user and
// password of every URL, and options of strategies whose names look like one. Durations are words.
func Shown(c *Config) map[string]any {
	s, _ := shown(reflect.ValueOf(c).Elem(), "").(map[string]any)
	return s
}

// shown returns what is shown of a value under a key.
func shown(v reflect.Value, key string) any {
	switch x := v.Interface().(type) {
	case time.Duration:
		return x.String()
	case ExplainLog:
		return x.String()
	case CacheSalt:
		if x.Text != "" { // who knows it can be in its tenant's place
			return hidden
		}
		return x.On
	case Chain:
		if len(x) == 1 {
			return x[0]
		}
	case string:
		return withoutSecret(key, x)
	}
	switch v.Kind() {
	case reflect.Interface, reflect.Pointer:
		if v.IsNil() {
			return nil
		}
		return shown(v.Elem(), key)
	case reflect.Struct:
		table := map[string]any{}
		for f := range v.Type().Fields() {
			if tag := f.Tag.Get("toml"); tag != "-" && tag != "" {
				table[tag] = shown(v.FieldByIndex(f.Index), tag)
			}
		}
		return table
	case reflect.Slice:
		list := make([]any, v.Len())
		for i := range list {
			list[i] = shown(v.Index(i), key)
		}
		return list
	case reflect.Map:
		table := map[string]any{}
		for _, k := range v.MapKeys() {
			table[k.String()] = shown(v.MapIndex(k), k.String())
		}
		return table
	}
	return v.Interface()
}

// withoutSecret returns a text without its secrets, for a page that others may see.
func withoutSecret(key, text string) string {
	named := strings.HasSuffix(key, "_file") || strings.HasSuffix(key, "_env") // where the secret stands
	for _, word := range []string{"password", "secret", "token", "api_key", "apikey"} {
		if !named && text != "" && strings.Contains(strings.ToLower(key), word) {
			return hidden
		}
	}
	if !strings.Contains(text, "://") || !strings.Contains(text, "@") {
		return text
	}
	u, err := url.Parse(text)
	if err != nil {
		return hidden
	}
	if u.User != nil {
		u.User = url.User("hidden")
	}
	return u.String()
}
