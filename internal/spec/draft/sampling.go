package draft

import "github.com/foretoken/foretoken/internal/sample"

// behind is the row of a drafted token at a depth, from 1, with a copy of the
// request's parameters in p. They hold as they do for the target, at the
// position of the token; its history has to get the path's tokens. Only what a
// grammar allows behind the first token is not known.
func (a *Ask) behind(depth int, p *sample.Params) sample.Row {
	row := a.Row
	*p = *row.Params
	p.LogProbs, p.ProcessedLogProbs = -1, false
	row.Params = p
	row.Position += depth - 1
	row.Generated += depth - 1
	if depth > 1 {
		row.Allowed = nil
	}
	return row
}
