package identity

import (
	"strings"

	"github.com/warmpath/warmpath/daemon/transport/upstream"
)

// MaxName bounds a name in bytes.
const MaxName = 1 << 10

// OfBody begins the entries of a list that are fields of the body.
const OfBody = "body."

// Identity is what a request says of the conversation that it belongs to.
type Identity struct {
	Session string // "" = none is named
	Parent  string // the conversation that began this one; "" = none is named
	By      string // the entry of the list that named it
	Final   bool   // the client says that no request of it follows
}

// Body returns the text of a field of the body, or "". Fields inside others are written with dots.
type Body interface{ Name(field string) string }

// finalField says of any conversation that it ends, if it is true.
const finalField = "X-Dynamo-Session-Final"

// schema is how one agent names its conversations.
type schema struct {
	session string
	child   string // has the name of a subagent, whose conversation is then one of its own; "" = no field has it
	parent  string // has the name of the session that started the conversation; "" = no field has it
}

// schemas are those that name more than the session.
var schemas = []schema{
	{session: "X-Warmpath-Session-Id", parent: "X-Warmpath-Parent-Session-Id"},
	{session: "X-Dynamo-Session-ID", parent: "X-Dynamo-Parent-Session-ID"},
	{session: "X-Claude-Code-Session-Id", child: "X-Claude-Code-Agent-Id", parent: "X-Claude-Code-Parent-Agent-Id"},
	{session: "Thread-Id", parent: "X-Codex-Parent-Thread-Id"},
	{session: "X-Session-Affinity", parent: "X-Parent-Session-Id"},
	{session: "X-Session-Id", parent: "X-Parent-Session-Id"},
	{session: OfBody + "vllm_xargs.agentic_context.program_id",
		parent: OfBody + "vllm_xargs.agentic_context.parent_program_id"},
}

// schemaOf returns the schema of an entry.
func schemaOf(entry string) schema {
	for _, s := range schemas {
		if strings.EqualFold(s.session, entry) {
			return s
		}
	}
	return schema{session: entry}
}

// List is where the names are looked for. A nil List finds none.
type List struct {
	header, body []schema
	lengths      uint64 // a bit for each length of a name in header, which is below 64
}

// New makes a list of entries, the surest first: names of header fields, and fields of the body behind OfBody.
func New(entries []string) *List {
	l := new(List)
	for _, entry := range entries {
		s := schemaOf(entry)
		if strings.HasPrefix(entry, OfBody) {
			l.body = append(l.body, s)
		} else {
			l.header = append(l.header, s)
			l.lengths |= 1 << (len(s.session) % 64)
		}
	}
	return l
}

// First returns the first header field of the list that the request has, or "".
func (l *List) First() string {
	if l == nil || len(l.header) == 0 {
		return ""
	}
	return l.header[0].session
}

// InHeader returns the identity by the first entry whose field the header has. It looks at each field once: the
// lengths of nearly all differ.
func (l *List) InHeader(fields upstream.Header) Identity {
	if l == nil {
		return Identity{}
	}
	first := len(l.header)
	for i := range fields {
		f := &fields[i]
		if l.lengths&(1<<(len(f.Name)%64)) == 0 {
			continue
		}
		for k := range first {
			if s := l.header[k].session; len(s) == len(f.Name) && strings.EqualFold(s, f.Name) && name(f.Value) != "" {
				first = k
				break
			}
		}
	}
	if first == len(l.header) {
		return Identity{}
	}
	id := l.header[first].inHeader(fields)
	id.By, id.Final = l.header[first].session, fields.Get(finalField) == "true"
	return id
}

// inHeader returns the identity by one schema. The name of a subagent is unique only within its session.
func (s *schema) inHeader(h upstream.Header) (id Identity) {
	id.Session = name(h.Get(s.session))
	if s.parent != "" {
		id.Parent = name(h.Get(s.parent))
	}
	if s.child == "" {
		return id
	}
	root, child := id.Session, name(h.Get(s.child))
	if child == "" {
		id.Parent = ""
		return id
	}
	id.Session = root + "/" + child
	if id.Parent == "" {
		id.Parent = root
	} else {
		id.Parent = root + "/" + id.Parent
	}
	return id
}

// InBody returns the identity by the first entry whose field the body has.
func (l *List) InBody(b Body) Identity {
	if l == nil {
		return Identity{}
	}
	for i := range l.body {
		s := &l.body[i]
		if id := name(b.Name(s.session[len(OfBody):])); id != "" {
			found := Identity{Session: id, By: s.session}
			if s.parent != "" {
				found.Parent = name(b.Name(s.parent[len(OfBody):]))
			}
			return found
		}
	}
	return Identity{}
}

// name returns a value as a name, "" if it is none.
func name(value string) string {
	if len(value) > MaxName {
		return ""
	}
	return strings.TrimSpace(value)
}
