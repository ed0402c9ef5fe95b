package conf

import (
	"fmt"
	"os"
	"regexp"
	"strings"
)

const (
	maxSecret    = 4 << 10 // a header field of reasonable size
	minClientKey = 8       // shorter ones can be guessed by trying; `openssl rand -hex 24` makes a good one
)

// Secret reads the client's key, now: from its file, without one newline at the end, or from its variable. An error
// names what is wrong with it, never the key.
func (k Key) Secret() (string, error) {
	s, f := secret(k.File, k.Env, minClientKey)
	if f != nil {
		return "", fmt.Errorf("conf: key %q: %s; %s", k.Name, f.what, f.remedy)
	}
	return s, nil
}

// WorkerKey reads the key that the pool's workers ask for, now, as Key.Secret does; "" if none is named.
func (p *Pool) WorkerKey() (string, error) {
	if p.WorkerKeyFile == "" && p.WorkerKeyEnv == "" {
		return "", nil
	}
	s, f := secret(p.WorkerKeyFile, p.WorkerKeyEnv, 1)
	if f != nil {
		return "", fmt.Errorf("conf: worker key of pool %q: %s; %s", p.Name, f.what, f.remedy)
	}
	return s, nil
}

// fault is why a value cannot be used.
type fault struct{ what, remedy string }

// Error is both on one line.
func (f *fault) Error() string { return f.what + "; " + f.remedy }

// secret reads the file, or the variable if no file is named, and checks that a header field can carry what it holds.
func secret(file, env string, shortest int) (string, *fault) {
	text := os.Getenv(env)
	from := "the variable " + env
	if file == "" && !variable(env) { // it may be the key itself: it is not shown
		return "", &fault{"it is no name of a variable",
			"write the name of the environment variable that holds the key: A-Z, 0-9 and underscore"}
	}
	if file != "" {
		data, err := read(file, maxSecret)
		if err != nil {
			return "", &fault{err.Error(), "put the key there, readable for this user"}
		}
		text = string(data)
		from = file
	}
	text = strings.TrimSuffix(strings.TrimSuffix(text, "\n"), "\r")
	switch {
	case text == "":
		return "", &fault{from + " holds no key", "put the key there"}
	case len(text) < shortest:
		return "", &fault{fmt.Sprintf("the key in %s has %d characters", from, len(text)),
			fmt.Sprintf("give one of at least %d, better 32", shortest)}
	case len(text) > maxSecret:
		return "", &fault{fmt.Sprintf("the key in %s is longer than %d bytes", from, maxSecret), "is it the key?"}
	}
	if shellLine.MatchString(text) {
		return "", &fault{"the key in " + from + " stands in quotes or behind NAME=, as in a shell",
			"put the key alone there"}
	}
	for i := range len(text) {
		if text[i] <= ' ' || text[i] > '~' {
			return "", &fault{fmt.Sprintf("the key in %s has a space, a line break or no ASCII at byte %d", from, i+1),
				"put the key alone there, on one line"}
		}
	}
	return text, nil
}

// shellLine matches a line that was copied from a shell or an .env file: NAME=KEY or "KEY".
var shellLine = regexp.MustCompile(`^[A-Z][A-Z0-9_]+=[^=]|^".*"$|^'.*'$`)

// variable reports whether s can name an environment variable in a shell.
func variable(s string) bool {
	const first = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"
	return s != "" && len(s) <= 128 && strings.Trim(s, first+"0123456789") == "" && strings.Contains(first, s[:1])
}

// checkKeys checks who may send requests. Two names for one key would make the log name the wrong one, and a client
// with the operator's token could drain workers.
func checkKeys(r *report, keys []Key, tokenFile string) {
	names := make(map[string]string)   // name -> path
	secrets := make(map[string]string) // secret -> path; never shown
	if tokenFile != "" {
		if token, f := secret(tokenFile, "", 1); f == nil {
			secrets[token] = "server.admin_token_file"
		}
	}
	for i, k := range keys {
		path := elem("keys", i)
		r.name(child(path, "name"), k.Name)
		r.unique(names, k.Name, child(path, "name"), "give each key its own name")
		r.patterns(child(path, "models"), k.Models, func(string, string) {})
		checkFence(r, child(path, "workers"), &keys[i])
		checkKeyLimits(r, path, &keys[i])
		checkRank(r, path, &k)
		if (k.File == "") == (k.Env == "") {
			r.add(path, "it needs one of file and env", `write file = "team-a.key" or env = "TEAM_A_KEY": where the key stands`)
			continue
		}
		at := child(path, "file")
		if k.File == "" {
			at = child(path, "env")
		}
		s, f := secret(k.File, k.Env, minClientKey)
		if f != nil {
			r.add(at, f.what, f.remedy)
		} else if first, known := secrets[s]; known {
			r.add(at, "it is the same key as that of "+first, "give each its own, so that each can be revoked separately")
		} else {
			secrets[s] = path
		}
	}
}

// checkRank checks the priority and weight of a key.
func checkRank(r *report, path string, k *Key) {
	at := child(path, "priority")
	switch p := k.Priority; {
	case len(p) != 2:
		r.add(at, fmt.Sprintf("it has %d numbers", len(p)), "write the least and the greatest, as [-100, 0]")
	case !within(p[0], -MaxPriority, MaxPriority) || !within(p[1], p[0], MaxPriority):
		r.outOfRange(at, p, fmt.Sprintf("write the least and the greatest, from -%d to %d, as [-100, 0]",
			MaxPriority, MaxPriority))
	}
	if !within(k.Weight, minKeyWeight, maxKeyWeight) {
		r.outOfRange(child(path, "weight"), k.Weight, "write a number from 0.1 to 100, as 2.0 for twice a key's share")
	}
}

// checkWorkerKey checks the key that a pool's workers ask for.
func checkWorkerKey(r *report, path string, p *Pool) {
	at := child(path, "worker_key_file")
	switch {
	case p.WorkerKeyFile == "" && p.WorkerKeyEnv == "":
		return
	case p.WorkerKeyFile != "" && p.WorkerKeyEnv != "":
		r.add(at, "it stands beside worker_key_env", "give one of the two")
		return
	case p.WorkerKeyFile == "":
		at = child(path, "worker_key_env")
	}
	if _, f := secret(p.WorkerKeyFile, p.WorkerKeyEnv, 1); f != nil {
		r.add(at, f.what, f.remedy)
	}
}

// either returns the text that stands inline or in a file, and its path in the configuration. The text is "" if there
// is neither, and if the report has got what is wrong with it.
func either(r *report, at, inline, fileAt, file string) (path, text string) {
	switch {
	case file == "":
		return at, inline
	case inline != "":
		r.add(fileAt, "it stands beside "+at[strings.LastIndexByte(at, '.')+1:], "give one of the two")
		return fileAt, ""
	}
	s, f := secret(file, "", 1)
	if f != nil {
		r.add(fileAt, f.what, f.remedy)
		return fileAt, ""
	}
	return fileAt, s
}
