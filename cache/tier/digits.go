package tier

import "strconv"

// maxDigits is the length of the longest counter, with its sign.
const maxDigits = 20

// plus adds to decimal digits; none are 0. It is as strict as Redis: what it does not write itself is no number.
func plus(digits []byte, delta int64) (int64, bool) {
	if digits == nil {
		return delta, true
	}
	n, err := strconv.ParseInt(string(digits), 10, 64)
	if err != nil || strconv.FormatInt(n, 10) != string(digits) {
		return 0, false
	}
	sum := n + delta
	return sum, (sum > n) == (delta > 0)
}
