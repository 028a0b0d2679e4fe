package engine

import (
	"errors"
	"math"
	"slices"
	"time"

	"github.com/foretoken/foretoken/internal/spec/adapt"
)

const (
	// profileContext is the context by which attention is measured, if there is room
	// for it; one that is shorter than the least says nothing beside the noise.
	profileContext = 1024
	leastContext   = 256

	contextRows = 8           // rows of the larger steps by which it is measured
	contextTime = time.Second // that steps of either number of rows take
	leastPairs  = 5
	mostPairs   = 25
)

// attention measures what a context adds to a step of one row, and to one of more.
// All rows have the same token, so that those of a mixture need the same experts.
// Nothing is measured where steps take so long that a second has too few of them.
func (p *profiler) attention(steps *adapt.Steps) error {
	e, most := p.e, p.grid[len(p.grid)-1]
	context := min(profileContext, e.cache.Capacity()-contextRows, e.maxLen-contextRows)
	if most < contextRows || context < leastContext || e.cache.PageSize() > profileContext || steps.Time(contextRows)*2*leastPairs > contextTime {
		return nil
	}
	if err := e.cache.Grow(&p.table, context+contextRows); err != nil {
		return err
	}
	// Memory that nothing was written to is one page of zeros to the system, and
	// reading it costs nothing.
	e.cache.Clear(&p.table)
	for i := range contextRows {
		p.tokens[i] = p.tokens[0]
	}
	one, oneErr, err := p.added(1, context)
	if err != nil {
		return err
	}
	more, moreErr, err := p.added(contextRows, context)
	steps.Attention = split(one, oneErr, more, moreErr)
	return err
}

// added returns the seconds that each position of a context adds to a step of so
// many rows, and how far that may be off. Steps with it and without are run in
// turns, and what one is to the other is taken, so that it matters little what else
// the machine does.
func (p *profiler) added(rows, context int) (seconds, off float64, err error) {
	least := time.Duration(math.MaxInt64)
	var ratios []float64
	for begin := time.Now(); len(ratios) < mostPairs && time.Since(begin) < contextTime; {
		without, err1 := p.run(rows, 0)
		with, err2 := p.run(rows, context)
		if err := errors.Join(err1, err2); err != nil {
			return 0, 0, err
		}
		least = min(least, without)
		ratios = append(ratios, float64(with)/float64(without))
	}
	if len(ratios) < leastPairs {
		return 0, 0, nil
	}
	ratio, off := median(ratios)
	position := least.Seconds() / float64(context)
	return (ratio - 1) * position, off * position, nil
}

// median returns that of samples, which it sorts, and about its standard error.
func median(x []float64) (m, err float64) {
	slices.Sort(x)
	n := len(x)
	return x[n/2], (x[n-1-n/4] - x[n/4]) / math.Sqrt(float64(n))
}

// split tells what a sequence reads from what its rows do with it, by the seconds
// that a position adds to a step of one row and to one of contextRows. As they are
// for contexts far longer than that which was measured, both count only as far as
// they are beyond the error.
func split(one, oneErr, more, moreErr float64) adapt.Attention {
	row := max(more-moreErr-(one+oneErr), 0) / (contextRows - 1)
	one = max(one-oneErr, 0)
	row = min(row, one)
	return adapt.Attention{Sequence: one - row, Row: row}
}
