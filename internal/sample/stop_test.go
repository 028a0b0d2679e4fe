package sample

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestStopMatcher(t *testing.T) {
	type result struct {
		Text []string // after each piece, and after the end if it was not stopped
		Stop string
	}
	tests := []struct {
		name    string
		stops   []string
		include bool
		pieces  []string
		want    result
	}{
		{"no stop strings", nil, false, []string{"ab", "c"}, result{[]string{"ab", "c", ""}, ""}},
		{"in one piece", []string{"STOP"}, false, []string{"go STOP now", "x"}, result{[]string{"go "}, "STOP"}},
		{"over pieces", []string{"STOP"}, false, []string{"go S", "TO", "P!"}, result{[]string{"go ", "", ""}, "STOP"}},
		{"held back in vain", []string{"STOP"}, false, []string{"go ST", "ART"}, result{[]string{"go ", "START", ""}, ""}},
		{"held back at the end", []string{"STOP"}, false, []string{"go STO"}, result{[]string{"go ", "STO"}, ""}},
		{"only what can begin it is held back", []string{"aab"}, false, []string{"aaa", "a"}, result{[]string{"a", "a", "aa"}, ""}},
		{"included", []string{"STOP"}, true, []string{"go S", "TOP!"}, result{[]string{"go S", "TOP"}, "STOP"}},
		{"the first to be complete", []string{"abcd", "bc"}, false, []string{"xabcd"}, result{[]string{"xa"}, "bc"}},
		{"inside a longer one that fails", []string{"abcde", "bc"}, false, []string{"abc", "x"}, result{[]string{"a"}, "bc"}},
		{"of those that end together the first listed", []string{"c", "bc"}, false, []string{"abc"}, result{[]string{"ab"}, "c"}},
		{"of those that end together the first listed, reversed", []string{"bc", "c"}, false, []string{"abc"}, result{[]string{"a"}, "bc"}},
		{"characters stay whole", []string{"né!"}, false, []string{"n", "é", "né", "!"}, result{[]string{"", "", "né", ""}, "né!"}},
		{"shared first bytes of characters", []string{"é"}, false, []string{"è", "é"}, result{[]string{"è", ""}, "é"}},
		{"listed twice: the first place counts", []string{"c", "bc", "c"}, false, []string{"abc"}, result{[]string{"ab"}, "c"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := NewStopSet(tt.stops).NewMatcher(tt.include)
			var got result
			stopped := false
			for _, piece := range tt.pieces {
				var text string
				text, stopped = m.Feed(piece)
				got.Text = append(got.Text, text)
				if stopped {
					break
				}
			}
			if !stopped {
				got.Text = append(got.Text, m.Flush())
			}
			got.Stop, _ = m.Stop()
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
			if text, again := m.Feed("more STOP"); stopped && (text != "" || !again) {
				t.Errorf("after the end: %q, %v", text, again)
			}
		})
	}
}

// Below min_tokens nothing stops; a stop string may straddle the border.
func TestStopMatcherPass(t *testing.T) {
	m := NewStopSet([]string{"END"}).NewMatcher(false)
	got := m.Pass("an END, E")
	text, stopped := m.Feed("ND.")
	if got != "an END, " || text != "" || !stopped {
		t.Errorf("passed %q, then %q, %v", got, text, stopped)
	}
	m = NewStopSet([]string{"END"}).NewMatcher(false)
	if text := m.Pass("END") + m.Flush() + m.Flush(); text != "END" {
		t.Errorf("passed %q", text)
	}
}

// Against a search from scratch after every byte: the same text whatever the
// pieces, whole characters, and no more held back than may begin a stop string.
func TestStopMatcherAgainstSearch(t *testing.T) {
	found := 0
	rapid.Check(t, stopsLikeSearch(&found))
	if found < 10 {
		t.Errorf("only %d texts were stopped", found)
	}
}

func FuzzStopMatcher(f *testing.F) { f.Fuzz(rapid.MakeFuzz(stopsLikeSearch(new(int)))) }

// stopsLikeSearch counts the texts that were stopped in found.
func stopsLikeSearch(found *int) func(*rapid.T) {
	return func(t *rapid.T) {
		word := func(min, max int) *rapid.Generator[string] {
			return rapid.StringOfN(rapid.RuneFrom([]rune("abéè日")), min, max, -1)
		}
		stops := rapid.SliceOfN(word(1, 5), 0, 6).Draw(t, "stops")
		piece := word(0, 4)
		if len(stops) > 0 {
			piece = rapid.OneOf(piece, rapid.SampledFrom(stops))
		}
		pieces := rapid.SliceOfN(piece, 0, 8).Draw(t, "pieces")
		include := rapid.Bool().Draw(t, "include")
		text := strings.Join(pieces, "")

		want, wantStop := text, ""
	search:
		for end := range len(text) + 1 {
			for _, s := range stops {
				if strings.HasSuffix(text[:end], s) {
					want, wantStop = text[:end], s
					if !include {
						want = want[:end-len(s)]
					}
					break search
				}
			}
		}

		m := NewStopSet(stops).NewMatcher(include)
		var sent, fed string
		for _, piece := range pieces {
			fed += piece
			out, stopped := m.Feed(piece)
			if !utf8.ValidString(out) {
				t.Fatalf("sent %q", out)
			}
			sent += out
			if stopped {
				break
			}
			held := fed[len(sent):]
			begins := func(suffix string) bool {
				return slices.ContainsFunc(stops, func(s string) bool { return strings.HasPrefix(s, suffix) })
			}
			if held != "" && (include || !begins(held)) {
				t.Fatalf("held back %q", held)
			}
			for i := range sent {
				if !include && begins(fed[i:]) {
					t.Fatalf("sent %q although %q may begin a stop string", sent, fed[i:])
				}
			}
		}
		stop, ok := m.Stop()
		if !ok {
			sent += m.Flush()
		} else {
			*found++
		}
		if sent != want || stop != wantStop {
			t.Fatalf("sent %q, stopped by %q; want %q, %q", sent, stop, want, wantStop)
		}
	}
}

func BenchmarkStopMatcher(b *testing.B) {
	text := strings.Repeat("the quick brown fox jumps over the lazy dog and stops at no word ", 100)
	for _, n := range []int{1, 4, 10000} {
		stops := make([]string, n)
		for i := range stops {
			stops[i] = fmt.Sprintf("the quick brown fox %d", i)
		}
		set := NewStopSet(stops)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				m := set.NewMatcher(false)
				for i := 0; i < len(text); i += 5 {
					m.Feed(text[i:min(i+5, len(text))])
				}
			}
		})
	}
}

func BenchmarkNewStopSet(b *testing.B) {
	stops := make([]string, 10000)
	for i := range stops {
		stops[i] = fmt.Sprintf("%x stop string %d", i*7919, i)
	}
	for b.Loop() {
		NewStopSet(stops)
	}
}
