package spec

// Lookup is prompt lookup (Saxena 2023), n-gram speculation: it appends to dst
// the n tokens that followed an earlier occurrence of the end of the text, the
// longest of least to most tokens, of equally long ones the latest. An
// occurrence near the end continues into what it proposes, as LZ77 copies a
// match that overlaps itself. It returns how many tokens matched, 0 if there is
// nothing to propose.
//
// There is no index: a scan of 32k tokens takes some tens of microseconds.
func Lookup(dst, text []int32, least, most, n int) (draft []int32, matched int) {
	if len(text) == 0 || n <= 0 {
		return dst, 0
	}
	from := 0
	end := text[len(text)-1]
	for i := len(text) - 1; i > 0 && matched < most; i-- {
		if text[i-1] != end {
			continue
		}
		m := 1
		for m < most && m < i && text[i-1-m] == text[len(text)-1-m] {
			m++
		}
		if m >= max(least, matched+1) {
			from, matched = i, m
		}
	}
	if matched == 0 {
		return dst, 0
	}
	base := len(dst)
	for i := range n {
		if at := from + i; at < len(text) {
			dst = append(dst, text[at])
		} else {
			dst = append(dst, dst[base+at-len(text)])
		}
	}
	return dst, matched
}
