package spec

// Rejection verifies token by token. A drawn child x of a row is accepted with
// probability min(1, p(x)/q(x)); a rejection leaves p as norm(max(p - q, 0)),
// and the token after the last accepted one is drawn from what is left of p
// (Leviathan et al. 2211.17192, algorithm 1; Chen et al. 2302.01318, algorithm 2).
//
// In a tree, siblings are tried in order, each against what the one before it
// left of p, and against q renormalised without the tokens tried: they were
// drawn without replacement (recursive rejection sampling: Jeon et al.
// 2402.14160; Yang et al. 2401.06706). A token that q cannot give any more is
// passed over: siblings drawn with replacement are those of a draw without, and
// repetitions.
//
// Where the children of a row were chosen, the rule is that of Match, with a
// token drawn from p.
//
// The law of the committed tokens is the target's. Errors are those of p.
func (v *Verifier) Rejection(d *Draft, p Target, draws Draws) (Verdict, error) {
	v.path = v.path[:0]
	for row := 0; ; {
		left, err := p(row)
		if err != nil {
			return Verdict{}, err
		}
		var node int
		q, drawn := d.drawn(row)
		if !drawn {
			token := draws.Pick(row, left)
			if node = d.Child(row, token); node < 0 {
				return Verdict{v.path, token}, nil
			}
		} else if node, left = v.siblings(d, row, left, q, draws); node < 0 {
			return Verdict{v.path, draws.Pick(row, left)}, nil
		}
		v.path = append(v.path, int32(node))
		row = node + 1
	}
}

// siblings tries the children of a row that were drawn from q. It returns the
// one accepted, or -1 and what is left of p.
func (v *Verifier) siblings(d *Draft, row int, p, q Row, draws Draws) (node int, left Row) {
	tried, side := int32(-1), 0
	for node = d.next(row, -1); node >= 0; node = d.next(row, node) {
		if tried >= 0 {
			v.rest.without(q, tried)
			q = v.rest
			tried = -1
		}
		x := d.Tokens[node]
		qx := q.Weight(x)
		if qx == 0 {
			continue
		}
		if draws.Accept(node, p.Weight(x)*q.Total, qx*p.Total) {
			return node, p
		}
		tried = x
		// Nothing is left only where p and q are equal but for rounding, and
		// the rejection was rounding too.
		scale := inverse(p.Total * q.Total)
		left := &v.left[side]
		if left.residual(p, q, q.Total*scale, p.Total*scale); left.Total > 0 {
			p, side = *left, 1-side
		}
	}
	return -1, p
}
