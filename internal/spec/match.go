package spec

// Match walks the draft along the tokens that the target itself takes: next
// returns the one after a row, and is asked from row 0 along the path. Where no
// child has that token, it is the verdict's next. The committed text is that of
// next alone, whatever the draft and its distributions are, so this is the rule
//
//   - of greedy decoding, next being the argmax (Stern et al. 2018, section 3),
//   - of coupled sampling, next being the Gumbel-max sample under the key of the
//     token's position: the text is then equal with any draft or none (Daliri,
//     Musco, Suresh 2024, drafter-invariant sampling),
//   - of deterministic trees at any temperature, next being any sample: EAGLE's
//     static tree (2401.15077) and EAGLE-2's dynamic one (2406.16858) with
//     children by rank, DDTree (2604.12989), prompt lookup.
//
// Errors are those of next.
func (v *Verifier) Match(t *Tree, next func(row int) (int32, error)) (Verdict, error) {
	v.path = v.path[:0]
	for row := 0; ; {
		token, err := next(row)
		if err != nil {
			return Verdict{}, err
		}
		node := t.Child(row, token)
		if node < 0 {
			return Verdict{v.path, token}, nil
		}
		v.path = append(v.path, int32(node))
		row = node + 1
	}
}
