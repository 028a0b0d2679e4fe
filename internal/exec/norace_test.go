//go:build !race

package exec

const raced = false
