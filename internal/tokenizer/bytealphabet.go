package tokenizer

import "unicode"

// The byte alphabet writes each byte as one printable character: bytes 33–126, 161–172 and 174–255
// as the character of that code, the other 68 in ascending order as U+0100, U+0101, … (GPT-2). A
// space becomes Ġ, a newline Ċ.
var (
	alphabet   [256]rune
	alphabetOf [0x144]int16 // the byte of a character, -1 for none
)

func init() {
	next := rune(0x100)
	for c := range alphabetOf {
		alphabetOf[c] = -1
	}
	for b := range alphabet {
		c := rune(b)
		if b <= 32 || b >= 127 && b <= 160 || b == 173 {
			c = next
			next++
		}
		alphabet[b] = c
		alphabetOf[c] = int16(b)
	}
}

// toByteAlphabet writes the UTF-8 bytes of s in the byte alphabet.
func toByteAlphabet(s string) string {
	return string(appendByteAlphabet(make([]byte, 0, 2*len(s)), s))
}

func appendByteAlphabet(dst []byte, s string) []byte {
	for i := range len(s) {
		if c := alphabet[s[i]]; c < 0x80 {
			dst = append(dst, byte(c))
		} else { // all others have two bytes
			dst = append(dst, 0xC0|byte(c>>6), 0x80|byte(c&0x3F))
		}
	}
	return dst
}

// appendFromByteAlphabet appends the bytes that s stands for, or s itself if a character of it is
// outside the alphabet.
func appendFromByteAlphabet(dst []byte, s string) []byte {
	begin := len(dst)
	for _, c := range s {
		if int(c) >= len(alphabetOf) || alphabetOf[c] < 0 {
			return append(dst[:begin], s...)
		}
		dst = append(dst, byte(alphabetOf[c]))
	}
	return dst
}

func isSpace(r rune) bool { return unicode.IsSpace(r) } // White_Space, in every version of Unicode
