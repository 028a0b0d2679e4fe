package adapt

// gains are sums over steps without prompt rows, in seconds.
type gains struct {
	took          float64 // with drafting
	plain         float64 // of decoding the tokens that were committed
	expected      float64 // of a step, by the table, with drafting
	expectedPlain float64 // of decoding the tokens that were expected
}

// Speedup returns how much faster drafts make the same sequences than decoding
// without, by the table of step times: as was expected when drafts were admitted,
// and of the tokens and times that came. 0: no step yet.
func (c *Controller) Speedup() (predicted, measured float64) {
	if g := c.gains; g.took > 0 {
		return g.expectedPlain / g.expected, g.plain / g.took
	}
	return 0, 0
}
