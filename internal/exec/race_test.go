//go:build race

package exec

// raced says that the race detector runs: it looks at what workers share, which
// is the same for all models, and makes steps thirty times as slow.
const raced = true
