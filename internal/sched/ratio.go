package sched

// retractSteps is how many decode steps the remaining sequences must be able
// to make after a retraction (A5).
const retractSteps = 20

// A ratio is the new-token ratio (A4): the share of the tokens that running
// sequences may still generate which admission keeps memory for. Most stop
// long before their limit, so keeping all would leave the pool empty. It falls
// step by step while memory suffices, and is set to what the batch has shown
// to need when it did not.
type ratio struct{ now, least, decay float64 }

func newRatio(conservativeness float64) ratio {
	start := min(0.7*conservativeness, 1)
	least := 0.14 * start
	return ratio{now: start, least: least, decay: (start - least) / 600}
}

// decoded is called after a decode step without retraction.
func (r *ratio) decoded() { r.now = max(r.now-r.decay, r.least) }

// retracted is called with the sequences that remain.
func (r *ratio) retracted(remaining []*sequence) {
	made, most := 0, 0
	for _, q := range remaining {
		made += q.out() + retractSteps
		most += q.MaxNew
	}
	r.now = min(1, float64(made)/float64(max(most, 1)))
}
