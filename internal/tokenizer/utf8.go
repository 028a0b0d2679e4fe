package tokenizer

import "unicode/utf8"

const replacement = "\uFFFD"

// validUTF8 replaces ill-formed parts of s by U+FFFD, one for each maximal subpart (Unicode 16,
// section 3.9): E2 82 41 becomes U+FFFD A, ED A0 80 three U+FFFD. Go's own conversions give one per
// byte or one per run.
func validUTF8(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	out, rest := appendUTF8(make([]byte, 0, len(s)+8), []byte(s))
	if rest > 0 {
		out = append(out, replacement...)
	}
	return string(out)
}

// appendUTF8 appends src to dst with ill-formed parts replaced as in validUTF8, up to an unfinished
// sequence at the end of src, of which it returns the length, 0 to 3.
func appendUTF8(dst, src []byte) (out []byte, unfinished int) {
	for i := 0; i < len(src); {
		r, n := utf8.DecodeRune(src[i:])
		if r != utf8.RuneError || n > 1 {
			dst = append(dst, src[i:i+n]...)
			i += n
			continue
		}
		n = subpart(src[i:])
		if i+n == len(src) && !utf8.FullRune(src[i:]) {
			return dst, n
		}
		dst = append(dst, replacement...)
		i += n
	}
	return dst, 0
}

// subpart returns the length of the maximal subpart at the start of the ill-formed b: the longest
// prefix that a well-formed sequence could begin with, at least 1.
func subpart(b []byte) int {
	n := 1
	for n < len(b) && n < utf8.UTFMax && !utf8.FullRune(b[:n]) {
		n++
	}
	// FullRune says that b[:n] is decidable, as an error here: its last byte does not belong to the
	// subpart.
	if n > 1 && utf8.FullRune(b[:n]) {
		n--
	}
	return n
}
