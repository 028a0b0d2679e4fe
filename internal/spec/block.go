package spec

import "errors"

// A ratio is num/den in [0, 1], den > 0. It is not divided out, so that
// nothing is rounded where the weights are small integers.
type ratio struct{ num, den float64 }

// times returns min(1, r·num/den).
func (r ratio) times(num, den float64) ratio {
	num, den = r.num*num, r.den*den
	if num >= den {
		return ratio{1, 1}
	}
	unit := inverse(den)
	return ratio{num * unit, den * unit}
}

// Block verifies a chain as a whole and commits as many tokens as any rule that
// keeps the law can, at least as many as Rejection in expectation (Sun et al.
// 2403.10444, algorithm 2). With ρ_0 = 1 and
//
//	ρ_i = min(1, ρ_(i-1) · p(x_i)/q(x_i))
//	S_i = Σ_x max(ρ_i·p(x) - q(x), 0)      p and q after x_i
//	h_i = S_i / (S_i + 1 - ρ_i), h_γ = ρ_γ
//
// it keeps i tokens for the largest i of which a coin of probability h_i falls,
// and draws the next token from norm(max(ρ_i·p - q, 0)), after all γ from p.
//
// Where a token was chosen, not drawn, q is 1 at it. The draft must be a chain.
// Errors are those of p.
func (v *Verifier) Block(d *Draft, p Target, draws Draws) (Verdict, error) {
	if d.Parents != nil {
		return Verdict{}, errors.New("block verification got a tree, expected a chain")
	}
	v.path, v.ratio, v.p = v.path[:0], append(v.ratio[:0], ratio{1, 1}), v.p[:0]
	// Tokens from the first impossible one on are not kept: ρ is 0 from there.
	kept := 0
	for ; ; kept++ {
		row, err := p(kept)
		if err != nil {
			return Verdict{}, err
		}
		v.p = append(v.p, row)
		if kept == d.Len() {
			break
		}
		q, x := d.chainQ(kept), d.Tokens[kept]
		px, qx := row.Weight(x), q.Weight(x)
		if px == 0 || qx == 0 {
			break
		}
		v.ratio = append(v.ratio, v.ratio[kept].times(px*q.Total, qx*row.Total))
	}

	// The largest i with a success is the first from the end.
	for ; ; kept-- {
		rho, left := v.ratio[kept], v.p[kept]
		if kept == d.Len() {
			if kept == 0 || draws.Accept(kept-1, rho.num, rho.den) {
				return v.chain(kept, draws.Pick(kept, left)), nil
			}
			continue
		}
		q := d.chainQ(kept)
		// ρ·p - q as distributions, times unit = ρ.den·p.Total·q.Total·2^k ≈ 1.
		scale := inverse(rho.den * left.Total * q.Total)
		v.left[0].residual(left, q, rho.num*q.Total*scale, rho.den*left.Total*scale)
		s, lost := v.left[0].Total, (rho.den-rho.num)*left.Total*q.Total*scale
		if s > 0 { // else p = q but for rounding
			left = v.left[0]
		}
		if kept == 0 {
			return v.chain(0, draws.Pick(0, left)), nil
		}
		if draws.Accept(kept-1, s, s+lost) {
			return v.chain(kept, draws.Pick(kept, left)), nil
		}
	}
}

// chainQ returns what token i of a chain was drawn from.
func (d *Draft) chainQ(i int) Row {
	if q, ok := d.drawn(i); ok {
		return q
	}
	return Row{IDs: d.Tokens[i : i+1], W: one[:], Total: 1}
}

var one = [1]float64{1}

func (v *Verifier) chain(kept int, next int32) Verdict {
	for i := range kept {
		v.path = append(v.path, int32(i))
	}
	return Verdict{v.path, next}
}
