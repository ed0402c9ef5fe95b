package tokens

// appendIDs appends the token ids of a JSON list, which are no more than most. It is false if the list holds anything
// else, or an id of more than 32 bits.
func appendIDs(ids []uint32, list []byte, most int) ([]uint32, bool) {
	i := skipSpace(list, 0)
	if i >= len(list) || list[i] != '[' {
		return ids, false
	}
	i = skipSpace(list, i+1)
	if i < len(list) && list[i] == ']' {
		return ids, skipSpace(list, i+1) == len(list)
	}
	for {
		lo, v := i, uint64(0)
		for i < len(list) && list[i]-'0' <= 9 && i-lo < 11 {
			v = v*10 + uint64(list[i]-'0')
			i++
		}
		if len(ids) == most || i == lo || v > 1<<32-1 || list[lo] == '0' && i > lo+1 {
			return ids, false
		}
		ids = append(ids, uint32(v))
		i = skipSpace(list, i)
		if i >= len(list) {
			return ids, false
		}
		switch list[i] {
		case ',':
			i = skipSpace(list, i+1)
		case ']':
			return ids, skipSpace(list, i+1) == len(list)
		default:
			return ids, false
		}
	}
}

func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\r' || b[i] == '\t') {
		i++
	}
	return i
}
