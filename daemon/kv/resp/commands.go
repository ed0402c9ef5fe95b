package resp

import (
	"crypto/subtle"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// command is one row of the table. arity counts the name too; a negative arity is a minimum.
type command struct {
	arity int
	run   func(c *conn, args [][]byte) error
	open  bool // also before AUTH
}

// commands holds all commands of the door. values.go has those on values.
var commands map[string]command

func init() {
	commands = map[string]command{
		"auth":    {arity: -2, run: runAuth, open: true},
		"client":  {arity: -2, run: runClient},
		"command": {arity: -1, run: func(c *conn, _ [][]byte) error { c.out.array(0); return nil }},
		"config":  {arity: -2, run: runConfig},
		"dbsize":  {arity: 1, run: runDBSize},
		"del":     {arity: -2, run: runDel},
		"echo":    {arity: 2, run: func(c *conn, args [][]byte) error { c.out.bulk(string(args[1])); return nil }},
		"exists":  {arity: -2, run: runExists},
		"get":     {arity: 2, run: runGet, open: true}, // see runGet
		"hello":   {arity: -1, run: runHello, open: true},
		"host:":   {arity: -1, run: runHTTP, open: true},
		"info":    {arity: -1, run: runInfo},
		"mget":    {arity: -2, run: runMGet},
		"ping":    {arity: -1, run: runPing},
		"post":    {arity: -1, run: runHTTP, open: true},
		"pttl":    {arity: 2, run: func(c *conn, args [][]byte) error { return runTTL(c, args, time.Millisecond) }},
		"publish": {arity: 3, run: runPublish},
		"quit":    {arity: -1, run: func(c *conn, _ [][]byte) error { c.out.ok(); c.quit = true; return nil }, open: true},
		"reset":   {arity: 1, run: runReset, open: true},
		"select":  {arity: 2, run: runSelect},
		"set":     {arity: -3, run: runSet},
		"strlen":  {arity: 2, run: runStrlen},
		"ttl":     {arity: 2, run: func(c *conn, args [][]byte) error { return runTTL(c, args, time.Second) }},
		"unlink":  {arity: -2, run: runDel},

		"warmpath.flush": {arity: 3, run: runFlush},
	}
}

// equalFold reports whether a word equals a keyword in capitals.
func equalFold(word []byte, keyword string) bool {
	return len(word) == len(keyword) && strings.EqualFold(string(word), keyword)
}

// longestName is longer than the longest command's name.
const longestName = 16

// lower appends a word in small letters as far as there is room: no command has a name that long.
func lower(to, word []byte) []byte {
	for _, b := range word[:min(len(word), cap(to))] {
		if b >= 'A' && b <= 'Z' {
			b += 'a' - 'A'
		}
		to = append(to, b)
	}
	return to
}

// execute runs the command that was read.
func (c *conn) execute() error {
	args := c.reader.args
	if len(args) == 0 {
		return nil
	}
	c.server.counts.commands.Add(1)
	var room [longestName]byte
	name := lower(room[:0], args[0])
	if !c.settled && string(name) != "auth" {
		c.settled = true
		switch string(name) {
		case "hello", "client", "command", "info":
			c.named = true
		}
	}
	cmd, known := commands[string(name)]
	switch {
	case !c.authorized && !cmd.open:
		c.failed("NOAUTH Authentication required.")
	case !known:
		c.failed(unknown(args))
	case cmd.arity >= 0 && len(args) != cmd.arity || len(args) < -cmd.arity:
		c.failed("ERR wrong number of arguments for '" + string(name) + "' command")
	default:
		return cmd.run(c, args)
	}
	c.abort()
	return nil
}

func (c *conn) failed(s string) {
	c.server.counts.failed.Add(1)
	c.out.fail(s)
}

// unknown returns Redis's error for an unknown command.
func unknown(args [][]byte) string {
	var b strings.Builder
	fmt.Fprintf(&b, "ERR unknown command '%.128s', with args beginning with: ", printable(args[0]))
	for _, a := range args[1:] {
		if b.Len() > 128 {
			break
		}
		fmt.Fprintf(&b, "'%.128s' ", printable(a))
	}
	if instead := others[strings.ToLower(string(args[0]))]; instead != "" {
		b.WriteString("; the KV cache has `warmpath cache " + instead + "` for it")
	}
	return b.String()
}

// others maps Redis commands that a person may try here to the warmpath command with the same purpose.
var others = map[string]string{"keys": "ls", "scan": "ls", "randomkey": "ls", "flushall": "flush", "flushdb": "flush",
	"memory": "stat", "object": "get", "type": "get", "dump": "get", "monitor": "stat", "slowlog": "stat"}

// printable replaces bytes that would end the line of an error.
func printable(b []byte) string {
	return strings.Map(func(r rune) rune {
		if r == '\r' || r == '\n' {
			return ' '
		}
		return r
	}, string(b[:min(len(b), 128)]))
}

// runHTTP closes the connection, as Redis does: a web page can make a browser send HTTP with commands in its body.
func runHTTP(c *conn, _ [][]byte) error {
	c.failed("ERR this is a Redis listener, which does not speak HTTP")
	c.quit = true
	return nil
}

func runPing(c *conn, args [][]byte) error {
	switch len(args) {
	case 1:
		c.out.status("PONG")
	case 2:
		if err := c.reader.hold(3 * int64(len(args[1]))); err != nil { // the argument, and the reply twice
			return err
		}
		c.out.bulk(string(args[1]))
	default:
		c.failed("ERR wrong number of arguments for 'ping' command")
	}
	return nil
}

// login checks a name and a password, in a time that reveals nothing about them.
func (c *conn) login(user, password []byte) bool {
	want := &c.server.config
	name := subtle.ConstantTimeCompare(user, []byte("default"))
	if want.User != "" {
		name |= subtle.ConstantTimeCompare(user, []byte(want.User))
	}
	ok := name&subtle.ConstantTimeCompare(password, []byte(want.Password)) == 1
	if !ok {
		c.failed("WRONGPASS invalid username-password pair or user is disabled.")
		if c.server.passwords.Due(time.Now(), time.Minute) {
			c.server.config.Log.Warn("a client of the KV cache gave a wrong password", "client", c.owner)
		}
		return false
	}
	c.authorized = true
	return true
}

func runAuth(c *conn, args [][]byte) error {
	user, password := []byte("default"), args[1]
	if len(args) == 3 {
		user, password = args[1], args[2]
	}
	switch {
	case len(args) > 3:
		c.failed("ERR syntax error")
	case c.server.config.Password == "":
		c.failed("ERR AUTH <password> called without any password configured for the default user. Are you sure your " +
			"configuration is correct?")
	case c.login(user, password):
		c.out.ok()
	}
	return nil
}

func runHello(c *conn, args [][]byte) error {
	proto := 0
	if len(args) > 1 {
		n, err := strconv.Atoi(string(args[1]))
		if err != nil {
			c.failed("ERR Protocol version is not an integer or out of range")
			return nil
		}
		if n != 2 && n != 3 {
			c.failed("NOPROTO unsupported protocol version")
			return nil
		}
		proto = n
	}
	for i := 2; i < len(args); {
		switch {
		case equalFold(args[i], "AUTH") && i+2 < len(args):
			if c.server.config.Password != "" && !c.login(args[i+1], args[i+2]) {
				return nil
			}
			i += 3
		case equalFold(args[i], "SETNAME") && i+1 < len(args):
			if !c.call(string(args[i+1])) {
				return nil
			}
			i += 2
		default:
			c.failed("ERR Syntax error in HELLO option '" + printable(args[i]) + "'")
			return nil
		}
	}
	if !c.authorized {
		c.failed("NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH " +
			"<user> <pass> option can be used to authenticate the client and select the RESP protocol version at the same time")
		return nil
	}
	if proto != 0 {
		c.out.resp3 = proto == 3
	}
	c.answerHello()
	return nil
}

func (c *conn) answerHello() {
	w := &c.out
	w.pairs(7)
	w.bulk("server")
	w.bulk("redis")
	w.bulk("version")
	w.bulk(redisVersion)
	w.bulk("proto")
	if w.resp3 {
		w.number(3)
	} else {
		w.number(2)
	}
	w.bulk("id")
	w.number(c.id)
	w.bulk("mode")
	w.bulk("standalone")
	w.bulk("role")
	w.bulk("master")
	w.bulk("modules")
	w.array(0)
}

func runReset(c *conn, _ [][]byte) error {
	c.db = 0
	c.call("")
	c.out.resp3 = false
	c.authorized = c.server.config.Password == ""
	c.out.status("RESET")
	return nil
}

// databases is the number of databases for SELECT, as in Redis by default.
const databases = 16

func runSelect(c *conn, args [][]byte) error {
	n, err := strconv.Atoi(string(args[1]))
	switch {
	case err != nil:
		c.failed("ERR value is not an integer or out of range")
	case n < 0 || n >= databases:
		c.failed("ERR DB index is out of range")
	default:
		c.db = n
		c.out.ok()
	}
	return nil
}

func runClient(c *conn, args [][]byte) error {
	sub := args[1]
	switch {
	case equalFold(sub, "ID") && len(args) == 2:
		c.out.number(c.id)
	case equalFold(sub, "GETNAME") && len(args) == 2 && c.name == "":
		c.out.null()
	case equalFold(sub, "GETNAME") && len(args) == 2:
		c.out.bulk(c.name)
	case equalFold(sub, "SETNAME") && len(args) == 3:
		if c.call(string(args[2])) {
			c.out.ok()
		}
	default:
		c.failed("ERR unknown subcommand '" + printable(sub) + "'. Try CLIENT HELP.")
	}
	return nil
}

// settings returns the settings that clients read by CONFIG GET.
func (c *conn) settings() [][2]string {
	s := c.server.config.Store
	return [][2]string{{"appendonly", "no"}, {"databases", strconv.Itoa(databases)},
		{"maxmemory", strconv.FormatInt(s.MaxBytes(), 10)}, {"maxmemory-policy", s.Policy()}, {"save", ""}}
}

func runConfig(c *conn, args [][]byte) error {
	if !equalFold(args[1], "GET") || len(args) < 3 {
		c.failed("ERR unknown subcommand '" + printable(args[1]) + "'. The KV cache is configured in warmpath.toml.")
		return nil
	}
	var found [][2]string
	for _, s := range c.settings() {
		for _, want := range args[2:] {
			if strings.EqualFold(string(want), s[0]) || string(want) == "*" {
				found = append(found, s)
				break
			}
		}
	}
	c.out.pairs(len(found))
	for _, s := range found {
		c.out.bulk(s[0])
		c.out.bulk(s[1])
	}
	return nil
}

func runDBSize(c *conn, _ [][]byte) error {
	c.out.number(int64(c.server.config.Store.Stats().Entries))
	return nil
}

// redisVersion is the version whose replies these are. Clients check it before they send newer commands.
const redisVersion = "7.0.15"

// runInfo returns the named sections, or all of them.
func runInfo(c *conn, args [][]byte) error {
	s, n := c.server.config.Store.Stats(), c.server.Stats()
	hits := s.Hits + s.FromDisk + s.FromFar
	var b strings.Builder
	section := func(name string, pairs ...any) {
		if !wantsSection(args[1:], name) {
			return
		}
		fmt.Fprintf(&b, "# %s\r\n", name)
		for i := 0; i < len(pairs); i += 2 {
			fmt.Fprintf(&b, "%s:%v\r\n", pairs[i], pairs[i+1])
		}
		b.WriteString("\r\n")
	}
	section("Server", "redis_version", redisVersion, "redis_mode", "standalone",
		"warmpath_version", c.server.config.Version, "run_id", c.server.run,
		"uptime_in_seconds", int(time.Since(c.server.started).Seconds()))
	section("Clients", "connected_clients", n.Connections, "maxclients", c.server.config.MaxConns)
	section("Memory", "used_memory", s.ReservedBytes+s.RecordBytes, "used_memory_dataset", s.ValueBytes,
		"maxmemory", c.server.config.Store.MaxBytes(), "maxmemory_policy", c.server.config.Store.Policy())
	section("Persistence", "loading", 0)
	section("Stats", "total_commands_processed", n.Commands, "total_net_input_bytes", n.BytesIn,
		"total_net_output_bytes", n.BytesSent, "expired_keys", s.Expirations, "evicted_keys", s.Evictions,
		"keyspace_hits", hits, "keyspace_misses", s.Misses, "pinned_keys", s.Pins, "leased_values", s.Leases)
	section("Replication", "role", "master", "connected_slaves", 0)
	if wantsSection(args[1:], "Keyspace") {
		section("Keyspace", keyspace(c.server.config.Store, databases, uint64(s.Entries))...)
	}
	c.out.bulk(b.String())
	return nil
}

// wantsSection reports whether an INFO command names a section.
func wantsSection(asked [][]byte, name string) bool {
	for _, a := range asked {
		for _, want := range []string{name, "ALL", "DEFAULT", "EVERYTHING"} {
			if strings.EqualFold(string(a), want) {
				return true
			}
		}
	}
	return len(asked) == 0
}
