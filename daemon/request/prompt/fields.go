package prompt

import "math"

// bodyField is a field of a request's body that means something to the router.
type bodyField uint8

const (
	fieldModel bodyField = iota
	fieldMessages
	fieldTools
	fieldPrompt
	fieldTokens       // of Tokens: token_ids
	fieldFeatures     // of Tokens: what its token ids have images for
	fieldSampling     // of Tokens: sampling_params
	fieldInput        // of Responses, or what is to be embedded
	fieldQuery        // of a rerank, or the first text of a score
	fieldDocuments    // of a rerank, or the second text of a score
	fieldInstructions // Responses' instructions, Anthropic's system
	fieldPrevious
	fieldMetadata
	fieldUserID // in metadata
	fieldStream
	fieldStreamOptions
	fieldIncludeUsage // in stream_options
	fieldEcho
	fieldLogprobs
	fieldTopLogprobs
	fieldPromptLogprobs
	fieldContinue
	fieldMaxNew // max_completion_tokens, Responses' max_output_tokens
	fieldMaxTokens
	fieldN
	fieldPriority
	fieldTier // OpenAI's service_tier
	fieldCacheKey
	fieldSessionID
	fieldUser
	fieldSafety       // OpenAI's name for the user, in place of user
	fieldExtension    // Dynamo's nvext
	fieldHintLength   // in nvext's agent_hints
	fieldHintPriority // there too
	fieldExtra        // vllm_xargs
	fieldProgram      // in its agentic_context
	fieldProgramOf    // there too: who began the program
	fieldSalt
	fieldHints      // kv_hints
	fieldBackground // Responses'

	fieldUnknown // any other
)

// fieldNames are the fields of the top level by their names in the body. Several names of one field never meet in a
// body of one kind.
var fieldNames = byLength(map[string]bodyField{
	"model":                  fieldModel,
	"messages":               fieldMessages,
	"tools":                  fieldTools,
	"prompt":                 fieldPrompt,
	"token_ids":              fieldTokens,
	"features":               fieldFeatures,
	"sampling_params":        fieldSampling,
	"input":                  fieldInput,
	"query":                  fieldQuery,
	"queries":                fieldQuery,
	"text_1":                 fieldQuery,
	"data_1":                 fieldQuery,
	"documents":              fieldDocuments,
	"items":                  fieldDocuments,
	"text_2":                 fieldDocuments,
	"data_2":                 fieldDocuments,
	"instructions":           fieldInstructions,
	"system":                 fieldInstructions,
	"previous_response_id":   fieldPrevious,
	"metadata":               fieldMetadata,
	"stream":                 fieldStream,
	"stream_options":         fieldStreamOptions,
	"echo":                   fieldEcho,
	"logprobs":               fieldLogprobs,
	"top_logprobs":           fieldTopLogprobs,
	"prompt_logprobs":        fieldPromptLogprobs,
	"continue_final_message": fieldContinue,
	"max_completion_tokens":  fieldMaxNew,
	"max_output_tokens":      fieldMaxNew,
	"max_tokens":             fieldMaxTokens,
	"n":                      fieldN,
	"priority":               fieldPriority,
	"service_tier":           fieldTier,
	"prompt_cache_key":       fieldCacheKey,
	"session_id":             fieldSessionID,
	"user":                   fieldUser,
	"safety_identifier":      fieldSafety,
	"nvext":                  fieldExtension,
	"vllm_xargs":             fieldExtra,
	"cache_salt":             fieldSalt,
	"kv_hints":               fieldHints,
	"background":             fieldBackground,
})

// namedField is a field and one of its names.
type namedField struct {
	name string
	bodyField
}

// byLength sorts fields by the lengths of their names. A key of a body is then compared with three names at most:
// half the time of a map, for which a hash of the key is made first.
func byLength(names map[string]bodyField) (table [maxFieldName + 1][]namedField) {
	for name, f := range names {
		table[len(name)] = append(table[len(name)], namedField{name, f})
	}
	return table
}

// maxFieldName is the length of the longest name.
const maxFieldName = len("continue_final_message")

// fieldNamed returns the field that a key of the top level names, or fieldUnknown.
func fieldNamed(key []byte) bodyField {
	if len(key) <= maxFieldName {
		alike := fieldNames[len(key)]
		for i := range alike {
			if name := alike[i].name; name[0] == key[0] && name == string(key) {
				return alike[i].bodyField
			}
		}
	}
	return fieldUnknown
}

// nameFields are what names a conversation or its user, by the names under which Request.Name knows them.
var nameFields = [...]namedField{
	{"prompt_cache_key", fieldCacheKey},
	{"session_id", fieldSessionID},
	{"user", fieldUser},
	{"metadata.user_id", fieldUserID},
	{"safety_identifier", fieldSafety},
	{"vllm_xargs.agentic_context.program_id", fieldProgram},
	{"vllm_xargs.agentic_context.parent_program_id", fieldProgramOf},
}

// names has the bits of nameFields.
const names = 1<<fieldCacheKey | 1<<fieldSessionID | 1<<fieldUser | 1<<fieldUserID | 1<<fieldSafety | 1<<fieldProgram

// fields are the places of a body's fields. If a field occurs twice the last one counts, as in Python.
type fields struct {
	body []byte
	seen uint64 // a bit for each bodyField that is there; the places of others are of bodies before
	at   [fieldUnknown]span
}

func (f *fields) reset(body []byte) {
	f.body = body
	f.seen = 0
}

// locate scans the value of a field.
func (f *fields) locate(s *scanner, i bodyField) bool {
	if !s.locate(&f.at[i]) {
		return false
	}
	f.seen |= 1 << i
	return true
}

// forget drops fields that were found.
func (f *fields) forget(all ...bodyField) {
	for _, i := range all {
		f.seen &^= 1 << i
	}
}

// has reports whether the field is there.
func (f *fields) has(i bodyField) bool { return f.seen&(1<<i) != 0 }

// raw returns a field's bytes in the body, or nothing.
func (f *fields) raw(i bodyField) []byte {
	if !f.has(i) {
		return nil
	}
	return f.at[i].of(f.body)
}

// inside returns the bytes between the quotes of a field that is a string, otherwise nil.
func (f *fields) inside(i bodyField) []byte { return Inside(f.raw(i)) }

// flag reports whether the field is true.
func (f *fields) flag(i bodyField) bool {
	raw := f.raw(i)
	return len(raw) > 0 && raw[0] == 't'
}

// given reports whether the field is there and neither null nor false. 0 is given: no further alternatives, but the
// token's own.
func (f *fields) given(i bodyField) bool {
	raw := f.raw(i)
	return len(raw) > 0 && raw[0] != 'n' && raw[0] != 'f'
}

// count returns the field as a number that is not negative, 0 if it is not there.
func (f *fields) count(i bodyField) uint32 {
	if !f.has(i) {
		return 0
	}
	return uint32(bounded(f.raw(i), 0, math.MaxUint32))
}

// signed returns the field as a number, 0 if it is not there.
func (f *fields) signed(i bodyField) int32 {
	if !f.has(i) {
		return 0
	}
	return int32(bounded(f.raw(i), math.MinInt32, math.MaxInt32))
}

func bounded(raw []byte, lo, hi float64) float64 { return min(max(parseNumber(raw), lo), hi) }
