package tokenizer

import (
	"bytes"
	"unicode/utf8"
)

// Decode returns the text of ids; ids that are no tokens contribute nothing. With skipSpecial
// neither do special tokens. Bytes that are no UTF-8 become U+FFFD, one for each maximal subpart;
// with a decoder for byte tokens (<0xXX>), each byte of a run of them that is not UTF-8 as a whole.
func (t *Tokenizer) Decode(ids []int32, skipSpecial bool) string {
	s := Stream{t: t, skipSpecial: skipSpecial, whole: true}
	var out []byte
	for _, id := range ids {
		out = s.push(out, id)
	}
	return string(s.flush(out))
}

// Stream decodes tokens as they come. It holds back an unfinished UTF-8 sequence, 3 bytes at most,
// until it is complete or known to be broken. What it returns in all is what Decode would, but that
// a run of byte tokens gives its well-formed characters even if bytes that are not well-formed
// follow.
type Stream struct {
	t           *Tokenizer
	skipSpecial bool
	whole       bool // nothing is emitted before its end: a run of byte tokens is judged as a whole

	began    bool   // a token has been decoded
	stripped int    // how many characters were removed from the start; -1: text has begun, no more will be
	run      []byte // bytes not yet emitted
	inRun    bool   // run consists of byte tokens
}

// Stream begins to decode what follows prompt, which may be empty. It matters: some tokenizers drop
// the first space of a sequence, and a prompt may end in the middle of a character.
func (t *Tokenizer) Stream(prompt []int32, skipSpecial bool) *Stream {
	s := &Stream{t: t, skipSpecial: skipSpecial}
	for _, id := range prompt {
		s.push(nil, id)
	}
	return s
}

// Push returns the text that id completes.
func (s *Stream) Push(id int32) string { return string(s.push(nil, id)) }

// Flush ends the sequence: it returns U+FFFD for what was held back.
func (s *Stream) Flush() string { return string(s.flush(nil)) }

func (s *Stream) push(out []byte, id int32) []byte {
	t, d := s.t, s.t.dec
	if !t.vocab.has(id) || s.skipSpecial && t.IsSpecial(id) {
		return out
	}
	added := t.kinds[id]&kindAdded != 0
	text := t.vocab.texts[id]
	isByte := false
	if d.byteToken && !(added && d.rawAdded) {
		_, isByte = byteTokenValue(text)
	}
	if s.inRun && !isByte {
		out = s.endRun(out)
	}
	if s.began {
		s.run = append(s.run, d.separator...)
	}
	if s.began || d.dropFirst == "" {
		s.run = append(s.run, t.Bytes(id)...)
	} else {
		s.run = d.contribution(s.run, text, added, true)
	}
	s.began = true
	s.inRun = isByte
	s.stripStart()
	if s.whole && isByte {
		return out
	}
	return s.emit(out)
}

// stripStart removes what the decoder drops at the start of the text.
func (s *Stream) stripStart() {
	d := s.t.dec
	for s.stripped >= 0 && len(s.run) > 0 {
		r, n := utf8.DecodeRune(s.run)
		if s.stripped == d.stripMax || r != d.strip || n == 0 {
			s.stripped = -1
			return
		}
		s.run = s.run[n:]
		s.stripped++
	}
}

// emit appends the finished characters of run to out.
func (s *Stream) emit(out []byte) []byte {
	if s.inRun {
		return s.emitBytes(out)
	}
	out, left := appendUTF8(out, s.run)
	s.run = append(s.run[:0], s.run[len(s.run)-left:]...)
	return out
}

// emitBytes is emit for byte tokens: every ill-formed byte gives a U+FFFD.
func (s *Stream) emitBytes(out []byte) []byte {
	b := s.run
	for len(b) > 0 && utf8.FullRune(b) {
		r, n := utf8.DecodeRune(b)
		out = utf8.AppendRune(out, r)
		b = b[n:]
	}
	s.run = append(s.run[:0], b...)
	return out
}

// endRun emits a run of byte tokens that another token or the end of the sequence ends.
func (s *Stream) endRun(out []byte) []byte {
	if utf8.Valid(s.run) {
		out = append(out, s.run...)
	} else {
		out = append(out, bytes.Repeat([]byte(replacement), len(s.run))...)
	}
	s.run, s.inRun = s.run[:0], false
	return out
}

func (s *Stream) flush(out []byte) []byte {
	if s.inRun {
		return s.endRun(out)
	}
	if len(s.run) > 0 {
		out = append(out, replacement...)
		s.run = s.run[:0]
	}
	return out
}
