package model

import (
	"slices"
	"strings"
	"testing"

	"github.com/foretoken/foretoken/internal/checkpoint"
	"github.com/foretoken/foretoken/internal/testmodel"
)

func TestSubset(t *testing.T) {
	spec := testmodel.Family("llama")
	spec.Layers = 4
	c, err := checkpoint.Open(testmodel.Safetensors(t, spec))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	m, err := Load(c, Options{})
	if err != nil {
		t.Fatal(err)
	}
	all := m.Layers()
	s, err := Subset(m, []int{0, 2, 3})
	if err != nil || !slices.Equal(s.Layers(), []Layer{all[0], all[2], all[3]}) || len(s.Cache()) != 4 {
		t.Errorf("%v: %d layers, %d in the cache", err, len(s.Layers()), len(s.Cache()))
	}
	for want, layers := range map[string][]int{
		"no layers: expected some of 0 to 3":                            nil,
		"layers [1 4]: expected numbers in ascending order, 0 to 3":     {1, 4},
		"layers [-1 1]: expected numbers in ascending order, 0 to 3":    {-1, 1},
		"layers [0 2 2 3]: expected numbers in ascending order, 0 to 3": {0, 2, 2, 3},
	} {
		if _, err := Subset(m, layers); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, expected %q", err, want)
		}
	}
}
