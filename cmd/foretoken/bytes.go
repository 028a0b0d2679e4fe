package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// byteCount is a size on the command line: a number with a unit, 24GB, 1.5GiB or
// 512B.
type byteCount struct {
	bytes int64
	text  string // as it was given
	unit  string // of it, as it was given
	size  float64
}

// UnmarshalText is called by kong.
func (n *byteCount) UnmarshalText(text []byte) error {
	number, unit := string(text), ""
	if i := strings.IndexFunc(number, func(r rune) bool { return r != '.' && (r < '0' || r > '9') }); i >= 0 {
		number, unit = number[:i], strings.TrimSpace(number[i:])
	}
	prefix, base := strings.TrimSuffix(strings.ToLower(unit), "b"), 1000.0
	if p, binary := strings.CutSuffix(prefix, "i"); binary && p != "" {
		prefix, base = p, 1024
	}
	v, err := strconv.ParseFloat(number, 64)
	exponent := 1 + strings.Index("kmgt", prefix)
	if err != nil || unit == "" || len(prefix) > 1 || exponent == 0 {
		return fmt.Errorf("%q: expected a number and a unit, such as 24GB or 1.5GiB", text)
	}
	if prefix == "" { // bytes
		exponent = 0
	}
	size := math.Pow(base, float64(exponent))
	if v *= size; v < 1 || v > 1<<60 {
		return fmt.Errorf("%q: expected at least a byte, and no more than 1EiB", text)
	}
	*n = byteCount{int64(v), string(text), unit, size}
	return nil
}

// atLeast prints a number of bytes in the unit of n, with three digits or more:
// a size that, given as printed, is no less.
func (n byteCount) atLeast(bytes int64) string {
	v := float64(bytes) / n.size
	digits := max(0, 2-int(math.Floor(math.Log10(v))))
	scale := math.Pow(10, float64(digits))
	return strconv.FormatFloat(math.Ceil(v*scale)/scale, 'f', -1, 64) + n.unit
}
