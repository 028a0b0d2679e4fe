package spec

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestLookup(t *testing.T) {
	for _, c := range []struct {
		name        string
		text        []int32
		least, most int
		n           int
		want        []int32
		matched     int
	}{
		{"empty text", nil, 1, 3, 4, nil, 0},
		{"one token", []int32{1}, 1, 3, 4, nil, 0},
		{"nothing repeats", []int32{1, 2, 3}, 1, 3, 4, nil, 0},
		{"the longest match", []int32{1, 2, 3, 4, 9, 3, 5, 1, 2, 3}, 1, 3, 2, []int32{4, 9}, 3},
		{"of equals the latest", []int32{1, 7, 1, 8, 1}, 1, 3, 1, []int32{8}, 1},
		{"no longer than most: the latest of those", []int32{1, 2, 3, 4, 2, 3, 5, 1, 2, 3}, 1, 2, 1, []int32{5}, 2},
		{"shorter than least", []int32{1, 2, 3, 4, 9, 3}, 2, 3, 4, nil, 0},
		{"on into the proposal", []int32{1, 2, 1, 2}, 1, 3, 5, []int32{1, 2, 1, 2, 1}, 2},
		{"one token repeated", []int32{5, 5, 5}, 1, 4, 3, []int32{5, 5, 5}, 2},
		{"nothing wanted", []int32{5, 5, 5}, 1, 4, 0, nil, 0},
	} {
		if got, matched := Lookup(nil, c.text, c.least, c.most, c.n); !slices.Equal(got, c.want) || matched != c.matched {
			t.Errorf("%s: %v of %d matched, expected %v of %d", c.name, got, matched, c.want, c.matched)
		}
	}
}

// Against a search by length: for every length, from the longest, every place,
// from the last.
func TestLookupFindsTheLongestLatest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.SliceOfN(rapid.Int32Range(0, 2), 0, 20).Draw(t, "text")
		least := rapid.IntRange(1, 3).Draw(t, "least")
		most := rapid.IntRange(1, 5).Draw(t, "most")
		n := rapid.IntRange(1, 30).Draw(t, "n")
		want := []int32{9}
		matched := 0
		for m := most; m >= least && matched == 0; m-- {
			for at := len(text) - 1; at >= m && matched == 0; at-- {
				if slices.Equal(text[at-m:at], text[len(text)-m:]) {
					matched = m
					on := slices.Clone(text)
					for i := range n {
						on = append(on, on[at+i])
					}
					want = append(want, on[len(text):]...)
				}
			}
		}
		got, gotMatched := Lookup([]int32{9}, text, least, most, n)
		if !slices.Equal(got, want) || gotMatched != matched {
			t.Fatalf("%v of %d matched, expected %v of %d", got, gotMatched, want, matched)
		}
	})
}
