package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// byteCount is a size on the command line: a number with a unit, 24GB or 1.5GiB.
type byteCount int64

// UnmarshalText is called by kong.
func (n *byteCount) UnmarshalText(text []byte) error {
	number, unit := string(text), ""
	if i := strings.IndexFunc(number, func(r rune) bool { return r != '.' && (r < '0' || r > '9') }); i >= 0 {
		number, unit = number[:i], strings.ToLower(strings.TrimSpace(number[i:]))
	}
	base := 1000.0
	unit, binary := strings.CutSuffix(strings.TrimSuffix(unit, "b"), "i")
	if binary {
		base = 1024
	}
	v, err := strconv.ParseFloat(number, 64)
	exponent := 1 + strings.Index("kmgt", unit)
	if err != nil || len(unit) != 1 || exponent == 0 {
		return fmt.Errorf("%q: expected a number and a unit, such as 24GB or 1.5GiB", text)
	}
	if v *= math.Pow(base, float64(exponent)); v < 1 || v > 1<<60 {
		return fmt.Errorf("%q: expected at least a byte, and no more than 1EiB", text)
	}
	*n = byteCount(v)
	return nil
}
